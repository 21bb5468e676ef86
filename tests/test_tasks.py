"""What a worker is given to do."""

from helpers import put_photo

from robustgen.generation import config
from robustgen.generation.plan import plan_benchmark
from robustgen.generation.recipes import CorruptionRecipe
from robustgen.generation.tasks import Item, Task
from robustgen.output.files import temporary_folder


def test_tasks_begin_with_different_arms_and_enter_the_same(tmp_path, monkeypatch):
    put_photo(tmp_path / "source" / "class" / "a.JPEG")
    choices = {"source": str(tmp_path / "source"), "output": str(tmp_path / "out")}
    plan = plan_benchmark(config.load(None, choices), "c")
    temporary_folder(plan.output).mkdir(parents=True)
    make = CorruptionRecipe.make

    def fail_at_blurs(self, arm, *args):
        if arm.name.endswith("_blur"):
            raise ValueError(f"no {arm.name}")
        return make(self, arm, *args)

    monkeypatch.setattr(CorruptionRecipe, "make", fail_at_blurs)
    (key,) = plan.keys
    item = Item(0, key, 1, plan.arms)
    tasks = [
        Task(plan.recipe, plan.source, plan.writer, plan.output, (item,), turn=turn) for turn in range(8)
    ]
    assert len({task.arms()[0] for task in tasks}) == 8
    assert all(sorted(task.arms()) == sorted(plan.arms) for task in tasks)
    first, *others = [task.run() for task in tasks]
    assert b"no defocus_blur" in first[0].line and b"fog/3" in first[0].line
    assert all(entries == first for entries in others)
