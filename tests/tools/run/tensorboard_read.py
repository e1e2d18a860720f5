"""tests/tools/run/tensorboard_read.py FOLDER - the scalars of a folder as tensorboard reads them, a line each: tag,
step, value."""
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
for tag in sorted(events.Tags()["scalars"]):
    for scalar in events.Scalars(tag):
        print(tag, scalar.step, repr(scalar.value))
