/**
 * Parses the URL of a database as libpq does, with the parameters that providers print. What cannot
 * work as libpq documents it is refused with one line that names the parameter. Pure.
 */
import { Failure } from '../../kernel/errors.ts';

export interface ConnectionSettings {
  /** In the order in which they are tried; empty for the default of the environment. */
  hosts: readonly DatabaseHost[];
  user: string | undefined;
  password: string | undefined;
  database: string | undefined;
  /** False behind a pooler in transaction mode. */
  keepsSession: boolean;
  tls: TlsSettings;
  channelBinding: ChannelBinding;
  targetSession: TargetSession;
  /** For one host; 0 for no limit but that of the statement. */
  connectTimeoutMs: number;
  /** Seconds without traffic before the first probe; 0 for no probes. */
  keepAliveS: number;
  /** Of the session, as the server knows them: `application_name`, `options`. */
  session: Readonly<Record<string, string>>;
}

export interface DatabaseHost {
  /** A name, an address, or the folder of a socket. */
  host: string;
  /** Instead of looking the name up. */
  address: string | undefined;
  port: number;
}

export interface TlsSettings {
  mode: SslMode;
  /** TLS begins at once, without asking the server. */
  isDirect: boolean;
  /** A file, with which every mode verifies; `system`; undefined for those that Node knows. */
  rootCertificates: string | undefined;
  revocations: string | undefined;
  /** Of the client: files. */
  certificate: string | undefined;
  key: string | undefined;
  keyPassword: string | undefined;
  /** Whether the name of the host is sent. */
  namesHost: boolean;
  minVersion: TlsVersion | undefined;
  maxVersion: TlsVersion | undefined;
}

const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;
export type SslMode = (typeof SSL_MODES)[number];
const CHANNEL_BINDINGS = ['disable', 'prefer', 'require'] as const;
type ChannelBinding = (typeof CHANNEL_BINDINGS)[number];
const TARGET_SESSIONS = [
  'any',
  'read-write',
  'read-only',
  'primary',
  'standby',
  'prefer-standby',
] as const;
export type TargetSession = (typeof TARGET_SESSIONS)[number];
const TLS_VERSIONS = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'] as const;
type TlsVersion = (typeof TLS_VERSIONS)[number];
const SWITCH = ['0', '1'] as const;

const PORT = 5432;
const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_S = 60;

/** Parameters that are read below. */
const KNOWN = new Set([
  'host',
  'hostaddr',
  'port',
  'dbname',
  'user',
  'password',
  'pool_mode',
  'pgbouncer',
  'sslmode',
  'ssl',
  'sslnegotiation',
  'sslrootcert',
  'sslcrl',
  'sslcert',
  'sslkey',
  'sslpassword',
  'sslsni',
  'sslcertmode',
  'ssl_min_protocol_version',
  'ssl_max_protocol_version',
  'channel_binding',
  'target_session_attrs',
  'connect_timeout',
  'keepalives',
  'keepalives_idle',
  'application_name',
  'options',
]);

/** With these values they change nothing here; with others they are refused. */
const WITHOUT_EFFECT: Record<string, RegExp> = {
  client_encoding: /^(utf-?8|auto)$/i,
  fallback_application_name: /./,
  gssencmode: /^(disable|prefer)$/,
  // Only some systems have them, says libpq; statements have a deadline of their own here.
  keepalives_interval: /^\d+$/,
  keepalives_count: /^\d+$/,
  tcp_user_timeout: /^\d+$/,
  load_balance_hosts: /^disable$/,
  sslcompression: /^[01]$/,
};

/** What to do instead of a parameter of libpq or of another driver. */
const INSTEAD: Record<string, string> = {
  client_encoding: 'use UTF8',
  connection_limit: 'use the settings database.connections',
  currentSchema: 'use options=-c%20search_path%3D…',
  gssencmode: 'use gssencmode=disable',
  load_balance_hosts: 'name the hosts in the order in which to try them',
  passfile: 'put the password into the URL or into PGPASSWORD',
  pool_timeout: 'remove it',
  require_auth: 'use channel_binding=require, which a password that is sent openly fails',
  schema: 'remove it; the tables are in the schema tallyhook',
  service: 'write the parameters of the service into the URL',
  sslaccept: 'use sslmode',
  sslcertmode: 'use sslcertmode=allow, or disable',
  sslcrldir: 'use sslcrl with a file',
  statement_cache_size: 'use pool_mode=transaction',
};

/**
 * @param variable where the URL is from, for the line of a refusal
 * @throws Failure `bad_setting`; the line holds no password
 */
export function parseConnection(text: string, variable = 'the URL'): ConnectionSettings {
  const refuse = (problem: string) => new Failure('bad_setting', `${variable}${problem}`);
  const { authority, path = '', query = '' } = FORM.exec(text.trim())?.groups ?? {};
  const at = authority?.lastIndexOf('@') ?? -1;
  const hosts = authority?.slice(at + 1) ?? '';
  // A password with one of these characters is read as hosts, path or query.
  const isCut = at < 0 && (path.includes('@') || (hosts !== '' && !path && query.includes('@')));
  if (authority === undefined || !HOSTS.test(hosts) || isCut) throw refuse(MALFORMED);
  const decode = (part: string, what: string) => {
    try {
      return decodeURIComponent(part);
    } catch {
      throw refuse(`: ${what} has a % that does not encode a character; write %25`);
    }
  };
  const [user, password] = splitAt(authority.slice(0, Math.max(0, at)), ':');
  const parameters = new Map<string, string>();
  for (const pair of query.split('&').filter(Boolean)) {
    const [name = '', value = ''] = splitAt(pair, '=');
    const known = decode(name, 'the query');
    if (!/^\w+$/.test(known)) throw refuse(MALFORMED);
    parameters.set(known, decode(value, `parameter ${known}`));
  }
  const read = makeReader(parameters, (name, problem) => refuse(`: ${name} ${problem}`));
  refuseUnknown(parameters, read.refuse);
  return {
    hosts: hostsOf(hosts === '' ? [] : hosts.split(','), read, (host) => decode(host, 'the host')),
    user: read.text('user') ?? (decode(user, 'the user') || undefined),
    password: read.text('password') ?? (decode(password ?? '', 'the password') || undefined),
    database: read.text('dbname') ?? (decode(path, 'the database') || undefined),
    keepsSession: keepsSession(read),
    tls: tlsOf(read),
    channelBinding: read.oneOf('channel_binding', CHANNEL_BINDINGS) ?? 'prefer',
    targetSession: read.oneOf('target_session_attrs', TARGET_SESSIONS) ?? 'any',
    connectTimeoutMs: 1_000 * (read.whole('connect_timeout') ?? CONNECT_TIMEOUT_MS / 1_000),
    keepAliveS: read.oneOf('keepalives', SWITCH) === '0' ? 0 : keepAliveOf(read),
    session: sessionOf(read),
  };
}

/** What libpq does not know. */
const OURS = ['pool_mode', 'pgbouncer'];
const OF_LOGIN = ['user', 'password'];

/**
 * A valid URL as programs of libpq take it, with another login if one is given. Without the
 * password of that login it holds no other secret either: programs ask for that of the key.
 */
export function urlForPrograms(
  text: string,
  login?: { user: string | undefined; password?: string | undefined },
): string {
  const { scheme = '', authority = '', path, query = '' } = FORM.exec(text.trim())?.groups ?? {};
  const ofLogin = login?.password === undefined ? [...OF_LOGIN, 'sslpassword'] : OF_LOGIN;
  const removed = login ? [...OURS, ...ofLogin] : OURS;
  const nameOf = (pair: string) => decodeURIComponent(splitAt(pair, '=')[0]);
  const kept = query.split('&').filter((pair) => !removed.includes(nameOf(pair)));
  const written = [login?.user, login?.password].filter((part) => part !== undefined);
  const before = written.length > 0 ? `${written.map(encodeURIComponent).join(':')}@` : '';
  const hosts = authority.slice(authority.lastIndexOf('@') + 1);
  const parameters = kept.join('&');
  return [
    `${scheme}://`,
    login ? before + hosts : authority,
    path === undefined ? '' : `/${path}`,
    parameters ? `?${parameters}` : '',
  ].join('');
}

/** The user and the hosts, for people; no password. */
export function placeOf({ hosts, user, database }: ConnectionSettings) {
  const places = hosts.map(({ host, port }) => {
    const name = host.includes(':') ? `[${host}]` : host;
    return port === PORT ? name : `${name}:${port}`;
  });
  const host = places.join(' or ') || 'the default host';
  return { user: user ?? '', database: database ?? user ?? '', host };
}

const FORM = new RegExp(
  '^(?<scheme>postgres(?:ql)?)://(?<authority>[^/?#]*)' +
    '(?:/(?<path>[^?#]*))?(?:\\?(?<query>[^#]*))?$',
);

const HOSTS = /^(?:(?:\[[^\]]*\]|[^:,]*)(?::\d*)?(?:,|$))*$/;
const MALFORMED =
  ' must be a URL such as postgres://user:password@host:5432/database; write the characters ' +
  '/ ? # % of a password as %2F %3F %23 %25';

type Refuse = (name: string, problem: string) => Failure;

/** The parameters, each by its kind. An empty one is absent. */
function makeReader(parameters: ReadonlyMap<string, string>, refuse: Refuse) {
  const text = (name: string) => parameters.get(name) || undefined;
  return {
    refuse,
    text,
    oneOf<T extends string>(name: string, values: readonly T[]): T | undefined {
      const value = text(name);
      const known = values.find((one) => one === value);
      if (value === undefined || known !== undefined) return known;
      throw refuse(name, `must be ${values.slice(0, -1).join(', ')} or ${values.at(-1)}`);
    },
    whole(name: string): number | undefined {
      const value = text(name);
      if (value === undefined) return undefined;
      if (!/^-?\d{1,7}$/.test(value)) throw refuse(name, 'must be a whole number of seconds');
      return Math.max(0, Number(value));
    },
  };
}

type Reader = ReturnType<typeof makeReader>;

function refuseUnknown(parameters: ReadonlyMap<string, string>, refuse: Refuse): void {
  for (const [name, value] of parameters) {
    if (KNOWN.has(name) || value === '' || WITHOUT_EFFECT[name]?.test(value)) continue;
    const instead = INSTEAD[name];
    const isKnown = WITHOUT_EFFECT[name] !== undefined;
    if (instead && isKnown) throw refuse(name, `is not supported with this value; ${instead}`);
    if (instead) throw refuse(name, `is not supported; ${instead}`);
    throw refuse(
      name,
      'is no parameter of a connection; remove it, or set a setting of the session ' +
        'with options=-c%20name%3Dvalue',
    );
  }
}

function hostsOf(
  written: readonly string[],
  read: Reader,
  decode: (host: string) => string,
): DatabaseHost[] {
  const list = (name: string) => read.text(name)?.split(',') ?? [];
  const inUrl = written.map((one): [string, string | undefined] => {
    const [, name = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(one) ?? [];
    return [decode(name).replace(/^\[(.*)\]$/, '$1'), port];
  });
  const addresses = list('hostaddr');
  const named = list('host').map((host): [string, undefined] => [host, undefined]);
  // As in libpq, the query overrides what stands before it.
  const pairs = named.length > 0 ? named : inUrl.length > 0 ? inUrl : addresses.map(bare);
  const ports = list('port');
  if (addresses.length > 0 && addresses.length !== pairs.length)
    throw read.refuse('hostaddr', `must have as many addresses as there are hosts`);
  if (ports.length > 1 && ports.length !== pairs.length)
    throw read.refuse('port', 'must be one, or as many as there are hosts');
  return pairs.map(([host, port], n) => {
    const text = ports[n] || (ports.length === 1 && ports[0]) || port || String(PORT);
    if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
      throw read.refuse('port', 'must be a whole number up to 65535');
    return { host: host || 'localhost', address: addresses[n] || undefined, port: Number(text) };
  });
}

function bare(host: string): [string, undefined] {
  return [host, undefined];
}

/** Prisma's name for a pooler in transaction mode is `pgbouncer=true`. */
function keepsSession(read: Reader): boolean {
  const mode = read.oneOf('pool_mode', ['session', 'transaction']);
  const prisma = read.oneOf('pgbouncer', ['true', 'false']);
  return mode === undefined ? prisma !== 'true' : mode === 'session';
}

function keepAliveOf(read: Reader): number {
  return read.whole('keepalives_idle') || KEEP_ALIVE_S;
}

function sessionOf(read: Reader): Record<string, string> {
  const names = ['application_name', 'options'];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = read.text(name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

function tlsOf(read: Reader): TlsSettings {
  const { text, oneOf, refuse } = read;
  const root = text('sslrootcert');
  const isDirect = oneOf('sslnegotiation', ['postgres', 'direct']) === 'direct';
  const mode = modeOf(read, root);
  if (isDirect && ['disable', 'allow', 'prefer'].includes(mode))
    throw refuse(
      'sslnegotiation',
      'is direct, which needs sslmode=require, verify-ca or verify-full',
    );
  const noCertificate = oneOf('sslcertmode', ['allow', 'disable']) === 'disable';
  const [certificate, key] = noCertificate ? [] : [text('sslcert'), text('sslkey')];
  if (certificate && !key) throw refuse('sslcert', 'needs sslkey, the file of its key');
  if (key && !certificate) throw refuse('sslkey', 'needs sslcert, the file of its certificate');
  return {
    mode,
    isDirect,
    rootCertificates: root,
    revocations: text('sslcrl'),
    certificate,
    key,
    keyPassword: text('sslpassword'),
    namesHost: oneOf('sslsni', SWITCH) !== '0',
    minVersion: oneOf('ssl_min_protocol_version', TLS_VERSIONS),
    maxVersion: oneOf('ssl_max_protocol_version', TLS_VERSIONS),
  };
}

/** As in libpq, authorities of the system demand verify-full. */
function modeOf(read: Reader, root: string | undefined): SslMode {
  const isOn = read.oneOf('ssl', ['true', 'false']) === 'true';
  const written = read.oneOf('sslmode', SSL_MODES) ?? (isOn ? 'require' : undefined);
  if (root === 'system') {
    if (written === undefined || written === 'verify-full') return 'verify-full';
    throw read.refuse('sslrootcert', 'is system, which needs sslmode=verify-full');
  }
  return written ?? 'prefer';
}

/** Before and after the first separator; without one, the whole and undefined. */
function splitAt(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
