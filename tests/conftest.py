"""What holds for all tests: no property is judged by how long an example takes, since machines are slow at times."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
