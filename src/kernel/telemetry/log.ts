/**
 * The log: JSON lines on standard error, written by pino, which only this file imports. Secrets are
 * redacted by field name, and again by pattern in the finished line. Errors are logged without
 * statements and their parameters. Results of commands go to standard output.
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
  `*.*.*.${field}`,
  `headers["${field}"]`,
]);

/** @param level a pino level such as `info` */
export function makeLog(level: string, destination?: DestinationStream): Log {
  const options = {
    level,
    base: null,
    redact: { paths: PATHS, censor: '[secret]' },
    serializers: { err: errorFields },
    hooks: { streamWrite: maskSecrets },
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  return pino(options, destination ?? pino.destination({ dest: 2, sync: true }));
}

const CAUSES_MAX = 4;

function errorFields(error: unknown, depth = 0): Record<string, unknown> {
  if (!(error instanceof Error)) return { name: typeof error };
  const { code } = error as { code?: unknown };
  const inner = depth < CAUSES_MAX && error.cause instanceof Error ? error.cause : undefined;
  const frames = error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? [];
  return {
    name: error.name,
    message: holdsValues(error) ? 'database statement failed' : maskSecrets(error.message),
    ...(typeof code === 'string' ? { errorCode: code } : {}),
    stack: maskSecrets(frames.slice(0, 7).join('\n')),
    ...(inner ? { cause: errorFields(inner, depth + 1) } : {}),
  };
}

/** Database drivers put the statement and its parameters into the message. */
function holdsValues(error: Error): boolean {
  return error.name === 'PostgresError' || 'query' in error || 'parameters' in error;
}

/** Masks keys, webhook secrets, tokens and passwords in a text, by pattern. */
export function maskSecrets(text: string): string {
  return text
    .replace(/\b(thk|whsec|whsk)_[A-Za-z0-9+/=_-]+/g, '$1_[secret]')
    .replace(/\b(Bearer|Basic)\s+[A-Za-z0-9+/=._~-]+/gi, '$1 [secret]')
    .replace(/\b((?:access_|refresh_)?token|client_secret|password)=[^&\s"]+/gi, '$1=[secret]')
    .replace(/(:\/\/[^:/@\s"]*:)[^\s"]+@/g, '$1[secret]@');
}

/** Writes a line to standard output. */
export function printLine(text = ''): void {
  process.stdout.write(`${text}\n`);
}
