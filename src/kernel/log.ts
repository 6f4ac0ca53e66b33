/**
 * The log: JSON lines by pino on standard error, constant messages with fields, secrets redacted by path. The only
 * importer of pino. An error is logged by name, code and stack; never with its parameters.
 */
import { type DestinationStream, type Logger, pino } from 'pino';

export type Log = Logger;

const SECRET_FIELDS = [
  'authorization',
  'access_token',
  'refresh_token',
  'client_secret',
  'clientSecret',
  'secret',
  'secrets',
  'password',
  'token',
  'code',
  'key',
  'adminKey',
  'masterKey',
  'databaseUrl',
  'DATABASE_URL',
];
const PATHS = SECRET_FIELDS.flatMap((field) => [
  field,
  `*.${field}`,
  `*.*.${field}`,
  `headers["${field}"]`,
]);

/** @param level a pino level such as `info` */
export function makeLog(level: string, destination?: DestinationStream): Log {
  const options = {
    level,
    base: null,
    redact: { paths: PATHS, censor: '[secret]' },
    serializers: { err: errorFields },
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  return pino(options, destination ?? pino.destination({ dest: 2, sync: true }));
}

/** What of an error may be written: no detail that could hold a parameter, a body or a header. */
export function errorFields(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { name: typeof error };
  const { code } = error as { code?: unknown };
  const cause = error.cause instanceof Error ? errorFields(error.cause) : undefined;
  return {
    name: error.name,
    message: maskSecrets(error.message),
    ...(typeof code === 'string' ? { errorCode: code } : {}),
    stack: maskSecrets(error.stack?.split('\n').slice(1, 8).join('\n') ?? ''),
    ...(cause ? { cause } : {}),
  };
}

/** Replaces what looks like one of our secrets, a bearer token or a password in a URL. */
export function maskSecrets(text: string): string {
  return text
    .replace(/\b(thk|whsec|whsk)_[A-Za-z0-9+/=_-]+/g, '$1_[secret]')
    .replace(/\b(Bearer|Basic)\s+[A-Za-z0-9+/=._~-]+/gi, '$1 [secret]')
    .replace(/(:\/\/[^:/@\s]+:)[^@\s]+@/g, '$1[secret]@');
}
