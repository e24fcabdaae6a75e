"""Several processes that train or score together: the group, sharded weights, random streams."""
