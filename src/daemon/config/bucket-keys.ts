/** The keys of the bucket for reports, and what its settings need. Pure. */
import { Failure } from '../../kernel/errors.ts';
import type { BucketKeys } from '../../reports/reports.ts';
import type { Settings } from './settings.ts';

/**
 * Undefined without a bucket.
 * @param variable the value of an environment variable
 * @throws Failure `bad_setting` for a bucket without its address or keys, or beside a folder
 */
export function bucketKeysOf(
  { reports }: Settings,
  variable: (name: string) => string | undefined,
): BucketKeys | undefined {
  const { folder, bucket } = reports.delivery;
  if (bucket.name === null) return undefined;
  const refuse = (name: string, expected: string): never => {
    throw new Failure('bad_setting', `${name} must be ${expected}`);
  };
  const needed = (name: string) =>
    variable(name) ?? refuse(name, 'set for reports.delivery.bucket.name');
  if (folder !== null)
    refuse('reports.delivery.folder', 'null while reports are delivered to a bucket');
  if (bucket.endpoint === null)
    refuse(
      'reports.delivery.bucket.endpoint',
      'a URL such as https://s3.eu-central-1.amazonaws.com',
    );
  return {
    accessKeyId: needed('AWS_ACCESS_KEY_ID'),
    secretAccessKey: needed('AWS_SECRET_ACCESS_KEY'),
    sessionToken: variable('AWS_SESSION_TOKEN'),
  };
}
