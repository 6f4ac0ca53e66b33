/** Responses of server-sent events (HTML Living Standard, section 9.2). */
import type { Context } from 'hono';
import { monotonicMs } from '../../kernel/clock.ts';

export const EVENT_STREAM = 'text/event-stream';

export interface StreamPage {
  /** `data` is one line of text; `id` is where a client continues after it. */
  events: readonly { id: string; type: string; data: string }[];
  /** Where a client continues after all of them. */
  id: string;
}

/** A client then connects again with its `Last-Event-ID`, and its key is checked again. */
const STREAM_MS = 300_000;

const STOPPING = ': the daemon is stopping; connect again with the last id\n\n';

/**
 * Streams the first page and those after it, as fast as the client reads, until the client
 * disconnects, a page fails, the signal aborts, or five minutes have passed. The signal adds a
 * comment, so that the end is not taken for a failure.
 * @param next the page after an id; it waits for events and may be empty
 */
export function answerEventStream(
  c: Context,
  stopping: AbortSignal,
  first: StreamPage,
  next: (id: string, aborted: AbortSignal) => Promise<StreamPage>,
): Response {
  const disconnected = new AbortController();
  const stop = AbortSignal.any([disconnected.signal, stopping]);
  const until = monotonicMs() + STREAM_MS;
  const encoder = new TextEncoder();
  let page: StreamPage | undefined = first;
  let { id } = first;
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const end = () => {
        if (stopping.aborted) controller.enqueue(encoder.encode(STOPPING));
        controller.close();
      };
      if (stop.aborted || monotonicMs() >= until) return end();
      try {
        page ??= await next(id, stop);
      } catch {
        return end();
      }
      id = page.id;
      controller.enqueue(encoder.encode(framesOf(page)));
      page = undefined;
    },
    cancel: () => disconnected.abort(),
  });
  const headers = { 'content-type': EVENT_STREAM, 'cache-control': 'no-store' };
  return c.body(stream, 200, headers);
}

/** An id without data is kept by clients and shown to nobody, so it also keeps a stream alive. */
function framesOf({ events, id }: StreamPage): string {
  const frames = events.map((one) => `id: ${one.id}\nevent: ${one.type}\ndata: ${one.data}\n\n`);
  return `${frames.join('')}id: ${id}\n\n`;
}
