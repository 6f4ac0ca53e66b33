/** Follows the event feed of the daemon as an app would, and notes when each event came. */
import { systemClock } from '../../../src/kernel/clock.ts';
import type { App, FeedEvent } from '../../harness/app.ts';

export interface Arrived extends FeedEvent {
  /** When it was received. */
  at: number;
}

export interface Feed {
  arrived: Arrived[];
  stop(): Promise<void>;
}

const TYPES = ['operation.settled', 'wallet.drift_opened', 'wallet.drift_closed'];
const PAGE = 500;
/** The daemon closes idle connections, perhaps just when a request is sent. */
const CLOSED = ['UND_ERR_SOCKET', 'ECONNRESET'];

export function followFeed(app: App): Feed {
  const arrived: Arrived[] = [];
  let stopped = false;
  async function follow(): Promise<void> {
    let cursor = '';
    while (!stopped) {
      const query = `cursor=${cursor}&types=${TYPES.join(',')}&wait=1&limit=${PAGE}`;
      const answer = await app.call('GET', `/api/events?${query}`).catch(undefinedIfClosed);
      if (!answer) continue;
      const { status, text, json } = answer;
      if (status !== 200) throw new Error(`the feed answered ${status} ${text}`);
      const at = systemClock.now();
      for (const event of json.data) arrived.push({ ...event, at });
      cursor = json.next_cursor;
    }
  }
  const following = follow();
  // Reported by `stop`; until then it must not end the process.
  following.catch(() => {});
  return {
    arrived,
    stop() {
      stopped = true;
      return following;
    },
  };
}

/** Reading a page again is safe. */
function undefinedIfClosed(error: { code?: string }): undefined {
  if (!CLOSED.includes(error.code ?? '')) throw error;
}
