"""Operations on all stores at once: backup, restore, export and import of one tenant."""
