"""Stores: files below a local folder, in a bucket or on a web server.

Only this package knows operating systems and object stores. A store never writes or deletes files outside its
folder, files appear complete or not at all, and every failure is an OSError with a one-line message.
"""

from robustgen.files.storage.base import AT_ONCE as AT_ONCE
from robustgen.files.storage.base import MOST_BYTES as MOST_BYTES
from robustgen.files.storage.base import Entry as Entry
from robustgen.files.storage.base import Store as Store
from robustgen.files.storage.base import measure as measure
from robustgen.files.storage.base import prefetch as prefetch
from robustgen.files.storage.opening import is_url as is_url
from robustgen.files.storage.opening import locate as locate
from robustgen.files.storage.opening import open_log as open_log
from robustgen.files.storage.opening import open_store as open_store
from robustgen.files.storage.opening import save as save
