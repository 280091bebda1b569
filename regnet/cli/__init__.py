"""The ``regnet`` command: one small file a verb."""
