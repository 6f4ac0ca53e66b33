/**
 * An app that uses Tallyhook: writes through the gateway, reads the API, follows the event feed.
 */
import { request } from 'undici';
import { jsonText, tryParseJson } from '../../src/kernel/json.ts';
import { ADMIN_KEY } from './daemon.ts';

export interface Answered {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers are what the test says they are
  json: any;
}

/** An event as the feed and webhooks give it. */
export interface FeedEvent {
  id: string;
  type: string;
  timestamp: string;
  // biome-ignore lint/suspicious/noExplicitAny: the data of an event is what its type says
  data: any;
}

type Headers = Record<string, string>;

export interface App {
  call(method: string, path: string, body?: unknown, headers?: Headers): Promise<Answered>;
  give(toAddr: string, amount: number | bigint, headers?: Headers): Promise<Answered>;
  transfer(
    fromAddr: string,
    toAddr: string,
    amount: number | bigint,
    headers?: Headers,
  ): Promise<Answered>;
  receiveFrom(fromAddr: string, amount: number, headers?: Headers): Promise<Answered>;
  mint(toAddr: string, tokenId: bigint | number, headers?: Headers): Promise<Answered>;
  /**
   * Follows the feed from its beginning until an event fits. @throws Error after `deadlineMs` (60 s
   * by default), listing what came
   */
  until(fits: (event: FeedEvent) => boolean, deadlineMs?: number): Promise<FeedEvent>;
  /** Every event so far. */
  events(): Promise<FeedEvent[]>;
}

const UNTIL_MS = 60_000;
const PAGE = 500;

/** @param url read at every call, since a restarted daemon has another port */
export function makeApp(url: () => string, key = ADMIN_KEY): App {
  const call: App['call'] = async (method, path, body, headers = {}) => {
    const answer = await request(`${url()}${path}`, {
      method: method as 'GET',
      headers: { authorization: `Bearer ${key}`, ...typeOf(body), ...headers },
      body: bodyOf(body),
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, headers: answer.headers, text, json: tryParseJson(text) };
  };
  return { call, ...writesOf(call), ...feedOf(call) };
}

function typeOf(body: unknown): Record<string, string> {
  if (body === undefined) return {};
  const form = body instanceof URLSearchParams;
  return { 'content-type': form ? 'application/x-www-form-urlencoded' : 'application/json' };
}

function bodyOf(body: unknown): string | Uint8Array | null {
  if (body === undefined) return null;
  if (typeof body === 'string' || body instanceof Uint8Array) return body;
  return body instanceof URLSearchParams ? body.toString() : jsonText(body);
}

function writesOf(call: App['call']): Pick<App, 'give' | 'transfer' | 'receiveFrom' | 'mint'> {
  const pay = (path: string, body: object, headers?: Headers) =>
    call('POST', `/v1/app/token/${path}`, { reasonType: 'test', ...body }, headers);
  return {
    give: (toAddr, amount, headers) => pay('operations/1/give', { toAddr, amount }, headers),
    transfer: (fromAddr, toAddr, amount, headers) =>
      pay('accounts/transfer', { fromAddr, toAddr, amount, feeAmount: 1 }, headers),
    receiveFrom: (fromAddr, amount, headers) =>
      pay('operations/receive-from', { fromAddr, amount, feeAmount: 1 }, headers),
    mint(toAddr, tokenId, headers) {
      const token = { toAddr, tokenId: String(tokenId), tokenURI: 'https://example.com/t' };
      return call('POST', '/v1/chain/erc721/1/mint', new URLSearchParams(token), headers);
    },
  };
}

function feedOf(call: App['call']): Pick<App, 'until' | 'events'> {
  async function page(
    cursor: string,
    waitS: number,
  ): Promise<{ data: FeedEvent[]; next_cursor: string }> {
    const answer = await call('GET', `/api/events?cursor=${cursor}&wait=${waitS}&limit=${PAGE}`);
    if (answer.status !== 200) throw new Error(`the feed answered ${answer.status} ${answer.text}`);
    return answer.json;
  }
  return {
    async until(fits, deadlineMs = UNTIL_MS) {
      const started = performance.now();
      const seen: FeedEvent[] = [];
      for (let cursor = ''; performance.now() - started < deadlineMs; ) {
        const next = await page(cursor, 2);
        cursor = next.next_cursor;
        seen.push(...next.data);
        const found = next.data.find(fits);
        if (found) return found;
      }
      const came = seen.map((event) => `${event.type} ${jsonText(event.data)}`).join('\n');
      throw new Error(`no event fitted within ${deadlineMs} ms; there were:\n${came}`);
    },
    async events() {
      const all: FeedEvent[] = [];
      for (let cursor = ''; ; ) {
        const next = await page(cursor, 0);
        all.push(...next.data);
        cursor = next.next_cursor;
        if (next.data.length < PAGE) return all;
      }
    },
  };
}
