/** Bodies of requests that are read while they arrive. */
import { withDeadline } from '../clock.ts';
import { Failure } from '../errors.ts';

/** A client that stalls so long gives its place to others. */
const IDLE_MS = 60_000;

/**
 * The chunks of a body.
 * @param stop aborts when the daemon stops
 * @param sent such as `the file`, for what a client reads
 * @throws Failure `malformed_json` when the body ends early, `request_timeout` when the client
 * stalls, `shutting_down`
 */
export async function* chunksOf(
  body: ReadableStream<Uint8Array>,
  {
    stop,
    sent,
    idleMs = IDLE_MS,
  }: { stop: AbortSignal; sent: string; idleMs?: number | undefined },
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const cut = () => {
    throw new Failure('malformed_json', 'the body ended early');
  };
  const late = () => {
    throw stop.aborted
      ? new Failure('shutting_down', `send ${sent} again`)
      : new Failure('request_timeout', `no more of the body arrived; send ${sent} again`);
  };
  let isGiven = false;
  try {
    for (;;) {
      isGiven = false;
      const { done, value } = await withDeadline(reader.read().catch(cut), idleMs, late, stop);
      if (done) return;
      isGiven = true;
      yield value;
    }
  } finally {
    // Who reads it wants no more of it.
    if (isGiven) reader.cancel().catch(() => {});
  }
}
