"""Names in the store that are the service's own.

Nodes of these labels have no property `tenant`. Every question of a tenant filters on that property, so none of them
is ever found or counted.
"""

from __future__ import annotations

NEWS = "PlatformNews"
"""Unsent events."""
WRITES = "PlatformWrite"
"""Keys of writes with their first result."""
LOCKS = "PlatformLock"
"""What writers of one tenant or owner touch first, so that they follow each other."""
LINKS = "PlatformLink"
"""Links between knowledge items of which one end has not come yet."""
GONE = "PlatformGone"
"""Keys of knowledge items that were forgotten: late news of them is dropped."""
PLATFORM = (NEWS, WRITES, LOCKS, LINKS, GONE)
