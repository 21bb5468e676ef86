"""Executors, which map any jobs to workers, report progress and survive dead workers."""

from robustgen.execution.base import Executor as Executor
from robustgen.execution.base import Job as Job
from robustgen.execution.base import WorkersLostError as WorkersLostError
from robustgen.execution.running import carry_out as carry_out
from robustgen.execution.running import count_cores as count_cores
from robustgen.execution.running import open_cluster as open_cluster
from robustgen.execution.running import open_executor as open_executor
