/**
 * A wake-up for each of a thousand writes a second would make the later stages run a thousand small
 * passes, each with its own commits, on the time of the writes. The first wakes at once; those
 * within the gap after it are one wake-up, at its end.
 */
import { after } from '../../kernel/clock.ts';

/** The same act, at most once per gap of `everyMs`, and never lost. */
export function gently(everyMs: number, act: () => void): () => void {
  let resting = false;
  let again = false;
  const run = () => {
    resting = true;
    again = false;
    after(everyMs, () => {
      resting = false;
      if (again) run();
    });
    act();
  };
  return () => {
    if (resting) again = true;
    else run();
  };
}
