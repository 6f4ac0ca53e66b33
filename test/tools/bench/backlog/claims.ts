/** How long the claims of deliveries took, by the log of Postgres. */
import { open, stat } from 'node:fs/promises';
import { quantileOf, type Sample } from '../frame.ts';

/** Begins an entry of a statement that was executed; the statement follows. */
const ENTRY = /duration: ([\d.]+) ms {2}execute [^:]*:/;
const CLAIM = 'tallyhook.claim_deliveries(';

/** Bytes of a file. */
export async function sizeOf(path: string): Promise<number> {
  return (await stat(path)).size;
}

/** The claims logged from a place in the log on; p95 is the value, in milliseconds. */
export async function claimTimes(log: string, from: number): Promise<Sample> {
  const text = await readFrom(log, from);
  const took = text.split('LOG:  ').flatMap((entry) => {
    const ms = ENTRY.exec(entry)?.[1];
    return ms !== undefined && entry.includes(CLAIM) ? [Number(ms)] : [];
  });
  took.sort((a, b) => a - b);
  if (took.length === 0) throw new Error(`${log} names no claim`);
  return {
    value: quantileOf(took, 0.95),
    p50: quantileOf(took, 0.5),
    p99: quantileOf(took, 0.99),
  };
}

async function readFrom(path: string, from: number): Promise<string> {
  const file = await open(path);
  try {
    const bytes = Buffer.alloc((await file.stat()).size - from);
    await file.read(bytes, 0, bytes.length, from);
    return bytes.toString();
  } finally {
    await file.close();
  }
}
