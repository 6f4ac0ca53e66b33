/**
 * The connections of one kind of broker, one for each endpoint. A connection is closed when its
 * endpoint changes, when nothing was sent for a minute, and when a send over it got no answer. Of
 * more than `LINKS_MAX` the one that was used least lately is closed, unless all are in use.
 */
import { after, monotonicMs } from '../../../kernel/clock.ts';
import type { Link } from './link.ts';

const IDLE_MS = 60_000;
const LINKS_MAX = 256;
/** How long the end of all connections is waited for. */
const CLOSE_MS = 2_000;

interface Entry {
  /** The encrypted settings that it was opened with. */
  source: string;
  link: Promise<Link>;
  /** Once it is there. */
  opened: Link | undefined;
  users: number;
  usedMs: number;
  cancelIdle: () => void;
}

export class Links {
  private readonly entries = new Map<string, Entry>();

  /**
   * Does something over the connection of an endpoint, which is opened if there is none.
   * @param signal when it aborts, the connection is not used any more
   * @throws Error with the code `too_many_connections`, or what opening or using it throws
   */
  async use<T>(
    endpointId: string,
    source: string,
    { open, signal }: { open: () => Promise<Link>; signal: AbortSignal },
    act: (link: Link) => Promise<T>,
  ): Promise<T> {
    const entry = this.entryOf(endpointId, source, open);
    entry.users++;
    entry.cancelIdle();
    const abandon = () => this.drop(endpointId, entry);
    signal.addEventListener('abort', abandon, { once: true });
    try {
      return await act(await entry.link);
    } finally {
      signal.removeEventListener('abort', abandon);
      entry.users--;
      entry.usedMs = monotonicMs();
      if (this.entries.get(endpointId) !== entry) this.closeUnused(entry);
      else if (entry.users === 0)
        entry.cancelIdle = after(IDLE_MS, () => this.drop(endpointId, entry));
    }
  }

  async close(): Promise<void> {
    const all = [...this.entries.values()];
    this.entries.clear();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const cancel = after(CLOSE_MS, resolve);
    await Promise.race([Promise.all(all.map(closeNow)), late]);
    cancel();
  }

  private entryOf(endpointId: string, source: string, open: () => Promise<Link>): Entry {
    const known = this.entries.get(endpointId);
    if (known?.source === source && known.opened?.isOpen() !== false) return known;
    // Sends that still use a former connection go on over it.
    if (known) {
      this.entries.delete(endpointId);
      this.closeUnused(known);
    }
    if (this.entries.size >= LINKS_MAX) this.evict();
    const link = open();
    const entry: Entry = {
      source,
      link,
      opened: undefined,
      users: 0,
      usedMs: monotonicMs(),
      cancelIdle: () => {},
    };
    this.entries.set(endpointId, entry);
    link.then(
      (opened) => {
        entry.opened = opened;
      },
      () => this.drop(endpointId, entry),
    );
    return entry;
  }

  private evict(): void {
    const unused = [...this.entries].filter(([, { users }]) => users === 0);
    const [oldest] = unused.sort(([, a], [, b]) => a.usedMs - b.usedMs);
    if (!oldest)
      throw Object.assign(new Error('all connections are in use'), {
        code: 'too_many_connections',
      });
    this.drop(...oldest);
  }

  private drop(endpointId: string, entry: Entry): void {
    if (this.entries.get(endpointId) === entry) this.entries.delete(endpointId);
    void closeNow(entry);
  }

  private closeUnused(entry: Entry): void {
    if (entry.users === 0) void closeNow(entry);
  }
}

async function closeNow({ link, cancelIdle }: Entry): Promise<void> {
  cancelIdle();
  await link.then(
    (opened) => opened.close(),
    () => {},
  );
}
