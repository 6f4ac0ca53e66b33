/**
 * A sender with the faults of many: it follows redirects, takes every status below 400 for success,
 * tries again at once, also after a 410 or 429, has no deadline or too short a one, trusts every
 * certificate, and checks a name that it then resolves again.
 */
import { Resolver } from 'node:dns/promises';
import { Agent, fetch } from 'undici';

const TRIES = 3;
const ALLOWED = '127.0.0.1';

export interface NaiveSender {
  /** Resolves when it has given up or succeeded. */
  send(url: string, id: string): Promise<void>;
  /** Ends what is under way. */
  close(): Promise<void>;
}

/** @param impatientMs a deadline for the head of an answer; none by default */
export function makeNaiveSender(nameServer: string, impatientMs?: number): NaiveSender {
  const over = new AbortController();
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  const resolver = new Resolver({ timeout: 500, tries: 1 });
  resolver.setServers([nameServer]);
  const addressOf = async (hostname: string) =>
    hostname.endsWith('.test') ? (await resolver.resolve4(hostname))[0] : hostname;
  async function isAccepted(url: URL, id: string): Promise<boolean> {
    if ((await addressOf(url.hostname)) !== ALLOWED) return false;
    const at = new URL(url);
    at.hostname = (await addressOf(url.hostname)) ?? '';
    const limits = impatientMs === undefined ? [] : [AbortSignal.timeout(impatientMs)];
    const signal = AbortSignal.any([over.signal, ...limits]);
    const headers = { 'webhook-id': id, 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: '{}', signal, dispatcher };
    const response = await fetch(at, { ...init, redirect: 'follow' });
    for await (const _ of response.body ?? []);
    return response.status < 400;
  }
  return {
    async send(url, id) {
      for (let n = 0; n < TRIES && !over.signal.aborted; n++)
        if (await isAccepted(new URL(url), id).catch(() => false)) return;
    },
    async close() {
      over.abort();
      await dispatcher.destroy();
    },
  };
}
