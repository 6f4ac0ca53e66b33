/**
 * A small S3-compatible service on loopback, which checks the signature of every request as the
 * documentation of Signature Version 4 defines it, with node:crypto alone, and the content by both
 * hashes. Objects are kept in memory.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Clock } from '../../src/kernel/clock.ts';
import { closeServer, listen } from './listen.ts';

export const BUCKET_KEYS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret+of/the+bucket' };

export interface Bucket {
  url: string;
  /** By host and path, as requested. */
  objects: Map<string, { type: string | undefined; content: Buffer }>;
  /** What it does with the next requests, in order; without one it works. */
  faults: ('503' | 'cut' | 'other_checksum')[];
  /** The answers so far. */
  answers: string[];
  close(): Promise<void>;
}

const sha256 = (data: string | Buffer) => createHash('sha256').update(data);
const hmac = (key: string | Buffer, text: string) =>
  createHmac('sha256', key).update(text).digest();

/** @param clock against which the times of requests are checked, as S3 does */
export async function startBucket(region: string, clock: Clock): Promise<Bucket> {
  const bucket: Omit<Bucket, 'url' | 'close'> = { objects: new Map(), faults: [], answers: [] };
  const server = createServer(
    (request, response) => void answer(bucket, { region, clock }, request, response),
  );
  const port = await listen(server);
  return Object.assign(bucket, {
    url: `http://127.0.0.1:${port}`,
    close: () => closeServer(server),
  });
}

async function answer(
  bucket: Omit<Bucket, 'url' | 'close'>,
  place: { region: string; clock: Clock },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const fault = bucket.faults.shift();
  if (fault === 'cut') {
    request.once('data', () => request.socket.destroy());
    return;
  }
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const content = Buffer.concat(parts);
  const checksum = sha256(content).digest('base64');
  const refusal = fault === '503' ? 'SlowDown' : problemOf(request, content, place);
  bucket.answers.push(refusal ?? 'OK');
  if (refusal !== undefined) {
    const status = refusal === 'SlowDown' ? 503 : refusal === 'BadDigest' ? 400 : 403;
    response.writeHead(status, { 'content-type': 'application/xml' });
    const key = `<AWSAccessKeyId>${BUCKET_KEYS.accessKeyId}</AWSAccessKeyId>`;
    response.end(`<?xml version="1.0"?><Error><Code>${refusal}</Code>${key}</Error>`);
    return;
  }
  const name = `${request.headers.host}${request.url}`;
  bucket.objects.set(name, { type: request.headers['content-type'], content });
  const stored = fault === 'other_checksum' ? sha256('other').digest('base64') : checksum;
  response.writeHead(200, { 'x-amz-checksum-sha256': stored }).end();
}

/** The code of the error that S3 answers; undefined for a valid request. */
function problemOf(
  request: IncomingMessage,
  content: Buffer,
  { region, clock }: { region: string; clock: Clock },
): string | undefined {
  const header = (name: string) => String(request.headers[name] ?? '').trim();
  const form =
    /^AWS4-HMAC-SHA256 Credential=(\S+), ?SignedHeaders=(\S+), ?Signature=([0-9a-f]{64})$/;
  const [, credential = '', signed = '', signature = ''] = form.exec(header('authorization')) ?? [];
  const [id, ...scope] = credential.split('/');
  const date = header('x-amz-date');
  const day = date.slice(0, 8);
  if (id !== BUCKET_KEYS.accessKeyId) return 'InvalidAccessKeyId';
  if (scope.join('/') !== `${day}/${region}/s3/aws4_request`) return 'AuthorizationHeaderMalformed';
  const at = Date.parse(
    date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
  );
  if (!(Math.abs(clock.now() - at) < 900_000)) return 'RequestTimeTooSkewed';
  const names = signed.split(';');
  const required = Object.keys(request.headers).filter((n) => n === 'host' || /^x-amz-/.test(n));
  if (!required.every((name) => names.includes(name))) return 'AccessDenied';
  const canonical = [
    request.method,
    (request.url ?? '').split('?')[0],
    (request.url ?? '').split('?')[1] ?? '',
    ...names.map((name) => `${name}:${header(name).replaceAll(/\s+/g, ' ')}`),
    '',
    signed,
    header('x-amz-content-sha256'),
  ].join('\n');
  const scoped = scope.join('/');
  const text = ['AWS4-HMAC-SHA256', date, scoped, sha256(canonical).digest('hex')].join('\n');
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(
    hmac,
    `AWS4${BUCKET_KEYS.secretAccessKey}`,
  );
  if (!timingSafeEqual(hmac(key, text), Buffer.from(signature, 'hex')))
    return 'SignatureDoesNotMatch';
  const isWhole =
    sha256(content).digest('hex') === header('x-amz-content-sha256') &&
    sha256(content).digest('base64') === header('x-amz-checksum-sha256');
  return isWhole ? undefined : 'BadDigest';
}
