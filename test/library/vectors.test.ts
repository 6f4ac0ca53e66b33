/** The vectors of signatures that third parties can run, too: library/receive/vectors.json. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { makeReceiver, type WebhookError } from '../../library/receive/receive.ts';

interface Vector {
  name: string;
  keys: string[];
  headers: Record<string, string>;
  body?: string;
  body_base64?: string;
  now: number;
  expect: string;
}

const FILE = join(import.meta.dirname, '../../library/receive/vectors.json');
const { vectors }: { vectors: Vector[] } = JSON.parse(readFileSync(FILE, 'utf8'));

async function resultOf({ keys, headers, body, body_base64, now }: Vector): Promise<string> {
  try {
    const receiver = makeReceiver({ keys, now: () => now * 1_000 });
    const bytes = body_base64 === undefined ? Buffer.from(body ?? '') : fromBase64(body_base64);
    await receiver.verify({ headers, body: bytes });
    return 'valid';
  } catch (error) {
    const { code } = error as WebhookError;
    // What is verified is read as an event, which the bodies of the vectors are not.
    return code === 'bad_event' ? 'valid' : code;
  }
}

const fromBase64 = (text: string) => Buffer.from(text, 'base64');

describe('The vectors', () => {
  it.each(vectors)('The vector "$name" gives $expect', async (vector) => {
    expect(await resultOf(vector)).toBe(vector.expect);
  });

  it('The vectors have the published cases A to F, and names of their own', () => {
    const names = vectors.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    const published = names.flatMap((name) => /^([A-F]): /.exec(name)?.[1] ?? []);
    expect([...new Set(published)].join('')).toBe('ABCDEF');
  });

  it('The library standardwebhooks makes the same v1 signature of each valid vector', () => {
    const single = vectors.filter(
      ({ keys, headers, expect: expected, body }) =>
        expected === 'valid' &&
        body !== undefined &&
        keys.length === 1 &&
        keys[0]?.startsWith('whsec_') &&
        headers['webhook-signature']?.startsWith('v1,'),
    );
    expect(single.length).toBeGreaterThan(5);
    for (const { keys, headers, body = '', name } of single) {
      const at = new Date(Number(headers['webhook-timestamp']) * 1_000);
      const made = new Webhook(keys[0] ?? '').sign(headers['webhook-id'] ?? '', at, body);
      expect(headers['webhook-signature']?.split(' '), name).toContain(made);
    }
  });
});
