"""Files below one place: a local folder, a bucket, a web server.

The only room that knows operating systems and object stores. Nothing outside a store's folder is ever
written or deleted, files appear whole or not at all, and every failure is an OSError of one line.
"""

from robustgen.storage.base import CLOSED as CLOSED
from robustgen.storage.base import Entry as Entry
from robustgen.storage.base import Seekable as Seekable
from robustgen.storage.base import Store as Store
from robustgen.storage.base import Writer as Writer
from robustgen.storage.opening import is_url as is_url
from robustgen.storage.opening import locate as locate
from robustgen.storage.opening import open_log as open_log
from robustgen.storage.opening import open_store as open_store
from robustgen.storage.opening import save as save
