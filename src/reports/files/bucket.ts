/**
 * Writes files to an S3-compatible bucket. The object is there whole or not at all: the service
 * checks the signed hash of the content. The address is the operator's own setting, so the address
 * rules of webhooks do not apply to it.
 */
import { createHash } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';
import { request } from 'undici';
import { after } from '../../kernel/clock.ts';
import { problemText } from '../../resources/faults.ts';

export interface BucketSettings {
  name: string;
  /** The address of the service, without the bucket. */
  endpoint: string;
  region: string;
  /** Begins the name of every object; may be empty. */
  prefix: string;
  /** The bucket is in the path of the URL instead of the host name. */
  pathStyle: boolean;
  keys: BucketKeys;
}

/** Never logged, stored or shown. */
export interface BucketKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string | undefined;
}

/** Shorter than a transaction may be idle, in which the file is locked. */
const TIMEOUT_MS = 30_000;
const PROBLEM_BYTES_MAX = 16_384;

/** The object as people name it. */
export function uriOf(bucket: Pick<BucketSettings, 'name' | 'prefix'>, file: string): string {
  return `s3://${bucket.name}/${keyOf(bucket, file)}`;
}

function keyOf({ prefix }: Pick<BucketSettings, 'prefix'>, file: string): string {
  return prefix === '' ? file : `${prefix}/${file}`;
}

/** Puts an object; returns what prevents it, without anything secret. */
export async function putObject(
  bucket: BucketSettings,
  file: string,
  { content, mediaType }: { content: string | Uint8Array; mediaType: string },
): Promise<string | undefined> {
  const body = Buffer.from(content);
  const hash = createHash('sha256').update(body).digest();
  const checksum = hash.toString('base64');
  const { url, headers } = await new AwsV4Signer({
    ...bucket.keys,
    region: bucket.region,
    service: 's3',
    method: 'PUT',
    url: objectUrl(bucket, file),
    headers: {
      'content-type': mediaType,
      'x-amz-content-sha256': hash.toString('hex'),
      'x-amz-checksum-sha256': checksum,
    },
  }).sign();
  const problem = await put(url, headers, { body, checksum });
  return problem && `${uriOf(bucket, file)} cannot be written: ${problem}`;
}

export function objectUrl(bucket: Omit<BucketSettings, 'keys'>, file: string): string {
  const url = new URL(bucket.endpoint);
  if (!bucket.pathStyle) url.hostname = `${bucket.name}.${url.hostname}`;
  const names = [...(bucket.pathStyle ? [bucket.name] : []), keyOf(bucket, file)];
  url.pathname = [url.pathname.replace(/\/+$/, ''), ...names].join('/');
  return url.href;
}

async function put(
  url: URL,
  headers: Headers,
  { body, checksum }: { body: Buffer; checksum: string },
): Promise<string | undefined> {
  const abort = new AbortController();
  const cancel = after(TIMEOUT_MS, () => abort.abort());
  try {
    const sent = { method: 'PUT', headers: Object.fromEntries(headers), body } as const;
    const response = await request(url, { ...sent, signal: abort.signal });
    const text = await startOf(response.body);
    if (response.statusCode !== 200) return refusal(response.statusCode, text);
    const stored = response.headers['x-amz-checksum-sha256'];
    return stored === undefined || stored === checksum ? undefined : 'its content was changed';
  } catch (error) {
    if (abort.signal.aborted) return `no answer within ${TIMEOUT_MS / 1000} s`;
    if ((error as { code?: string }).code === undefined) throw error;
    return problemText(error);
  } finally {
    cancel();
  }
}

async function startOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body) {
    parts.push(part);
    size += part.length;
    if (size > PROBLEM_BYTES_MAX) break;
  }
  return Buffer.concat(parts).toString();
}

/** Only the code: the rest of the document may repeat parts of the request. */
function refusal(status: number, document: string): string {
  const code = /<Code>(\w{1,60})<\/Code>/.exec(document)?.[1];
  return code === undefined ? `status ${status}` : `status ${status} ${code}`;
}
