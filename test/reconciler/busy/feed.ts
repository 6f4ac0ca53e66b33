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

export function followFeed(app: App): Feed {
  const arrived: Arrived[] = [];
  let stopped = false;
  async function follow(): Promise<void> {
    let cursor = '';
    while (!stopped) {
      const query = `cursor=${cursor}&types=${TYPES.join(',')}&wait=1&limit=${PAGE}`;
      const { status, text, json } = await app.call('GET', `/api/events?${query}`);
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
