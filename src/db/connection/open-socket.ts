/**
 * Opens the connection that the driver then uses: tries the hosts in their order, with or without
 * TLS as the mode says, and logs in. The driver's own way takes a server without TLS for one that
 * has it, cannot verify a server that is named by an address, and has no channel binding.
 */
import { readFile } from 'node:fs/promises';
import { connect as connectTcp, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import * as tls from 'node:tls';
import { after } from '../../kernel/clock.ts';
import { serverNameOf } from '../../kernel/http/server-name.ts';
import { systemRandom } from '../../kernel/random.ts';
import { failedHandshake, tlsFaultOf } from '../../resources/faults.ts';
import { type Login, LoginRefused, logIn, type ServerState } from './log-in.ts';
import { coded, encoded, fieldsOf, readBytes, readMessage } from './messages.ts';
import type { ConnectionSettings, DatabaseHost, SslMode, TargetSession } from './settings.ts';

/** What the driver has found, with the defaults of the environment. */
export interface DriverOptions extends Pick<Login, 'user' | 'pass' | 'database'> {
  host: readonly string[];
  port: readonly number[];
}

/** No host of the list has the session that is asked for. */
export const NO_TARGET = 'NO_TARGET_SESSION';
/** A file of the URL cannot be used; the text says which. */
export const TLS_FILES = 'TLS_FILES';
/** cannot_connect_now: another host may be up. */
const STARTING = '57P03';

/**
 * Never rejects, because the driver would count the connection as open for ever: a failure is the
 * error of the socket.
 */
export async function openSocket(
  settings: ConnectionSettings,
  driver: DriverOptions,
  session: Login['session'],
  signal: AbortSignal,
): Promise<Duplex> {
  try {
    return await firstThatSuits(settings, driver, session, signal);
  } catch (error) {
    return failedSocket(failureOf(error as NodeJS.ErrnoException));
  }
}

/**
 * Takes the first message of the driver, and then fails. Its event `close` says that it failed, as
 * that of a socket does: the driver waits longer after each such one.
 */
function failedSocket(failure: Error): Duplex {
  const socket = new Duplex({
    emitClose: false,
    read: () => {},
    write: (_bytes, _encoding, done) => done(),
    destroy(error, done) {
      done(error);
      process.nextTick(() => socket.emit('close', error !== null));
    },
  });
  after(0, () => socket.destroy(failure));
  return socket;
}

/** What keeps a connection from opening is an outage of the database, with any code. */
function failureOf(error: NodeJS.ErrnoException): Error {
  if (error.name === 'PostgresError') return error;
  const code = tlsFaultOf(error) ?? error.code ?? 'CONNECTION_FAILED';
  // A server that does not run has no socket in its folder.
  return coded(code === 'ENOENT' ? 'ECONNREFUSED' : code, error.message);
}

/** @throws an error with a code: of the system, of `TlsFault`, SQLSTATE, or of this folder */
async function firstThatSuits(
  settings: ConnectionSettings,
  driver: DriverOptions,
  session: Login['session'],
  signal: AbortSignal,
): Promise<Socket> {
  const hosts = settings.hosts.length > 0 ? settings.hosts : [defaultHost(driver)];
  const { user, pass, database } = driver;
  const { channelBinding, targetSession } = settings;
  const needsState = targetSession !== 'any';
  const account = { user, pass, database, session };
  const login = { ...account, channelBinding, needsState, random: systemRandom };
  const attempt = { settings, login, secrets: await secretsOf(settings), signal };
  let failure: unknown;
  for (const target of passesOf(settings.targetSession)) {
    for (const host of hosts) {
      try {
        const { socket, state } = await tryHost(host, attempt);
        if (isWanted(target, state)) return socket;
        socket.destroy();
        failure = coded(NO_TARGET, `no host is ${target}`);
      } catch (error) {
        const isRefused = error instanceof LoginRefused && error.code !== STARTING;
        if (signal.aborted || isRefused) throw error;
        failure ??= error;
      }
    }
  }
  throw failure;
}

function defaultHost({ host: [host = 'localhost'], port: [port = 5432] }: DriverOptions) {
  return { host, address: undefined, port };
}

/** `prefer-standby` takes what there is when no host is a standby. */
function passesOf(target: TargetSession): TargetSession[] {
  return target === 'prefer-standby' ? ['standby', 'any'] : [target];
}

function isWanted(target: TargetSession, { isStandby, isReadOnly }: ServerState): boolean {
  const suits: Record<TargetSession, boolean> = {
    any: true,
    'read-write': !(isStandby || isReadOnly),
    'read-only': isStandby || isReadOnly,
    primary: !isStandby,
    standby: isStandby,
    'prefer-standby': true,
  };
  return suits[target];
}

interface Attempt {
  settings: ConnectionSettings;
  login: Login;
  secrets: tls.ConnectionOptions;
  signal: AbortSignal;
}

/** `asked`: with TLS if the server has it. */
type Way = 'plain' | 'asked' | 'tls';

function waysOf(mode: SslMode, { host }: DatabaseHost): [Way, Way?] {
  if (host.startsWith('/') || mode === 'disable') return ['plain'];
  if (mode === 'allow') return ['plain', 'tls'];
  return mode === 'prefer' ? ['asked', 'plain'] : ['tls'];
}

/** `allow` and `prefer` have a second way: TLS failed, or the server refuses the first way. */
async function tryHost(host: DatabaseHost, attempt: Attempt) {
  const [first, second] = waysOf(attempt.settings.tls.mode, host);
  try {
    return await tryOnce(host, first, attempt);
  } catch (error) {
    const isRefused = error instanceof LoginRefused && !error.wasAsked && error.code !== STARTING;
    if (!second || !(isRefused || tlsFaultOf(error)) || attempt.signal.aborted) throw error;
    return await tryOnce(host, second, attempt);
  }
}

async function tryOnce(host: DatabaseHost, way: Way, attempt: Attempt) {
  const { settings, login, signal } = attempt;
  const ended = coded('CONNECTION_ENDED', 'the pool was closed');
  if (signal.aborted) throw ended;
  const tcp = openTcp(host);
  const failed = Promise.withResolvers<never>();
  const fail = (error: Error) => failed.reject(error);
  tcp.on('error', fail);
  const late = () => fail(coded('CONNECT_TIMEOUT', 'no connection in time'));
  const cancel = settings.connectTimeoutMs > 0 ? after(settings.connectTimeoutMs, late) : () => {};
  const abort = () => fail(ended);
  signal.addEventListener('abort', abort, { once: true });
  const work = async () => {
    await new Promise<void>((resolve) => tcp.once('connect', resolve));
    const socket = way === 'plain' ? tcp : await withTls(tcp, host, way, attempt);
    socket.on('error', fail);
    return { socket, state: await logIn(socket, login) };
  };
  try {
    return await Promise.race([work(), failed.promise]);
  } catch (error) {
    tcp.destroy();
    throw error;
  } finally {
    cancel();
    signal.removeEventListener('abort', abort);
  }
}

function openTcp({ host, address, port }: DatabaseHost): Socket {
  return host.startsWith('/')
    ? connectTcp(`${host}/.s.PGSQL.${port}`)
    : connectTcp({ host: address ?? host, port });
}

const TLS_REQUEST = encoded('', 80_877_103);

/** Asks the server for TLS, unless it begins at once. */
async function withTls(tcp: Socket, host: DatabaseHost, way: Way, attempt: Attempt) {
  if (attempt.settings.tls.isDirect) return await shakeHands(tcp, host, attempt);
  tcp.write(TLS_REQUEST);
  const answer = (await readBytes(tcp, 1)).toString('latin1');
  if (answer === 'S') {
    // Plain bytes before the encrypted ones may be injected.
    if (tcp.readableLength > 0) throw coded('tls_failed', 'bytes before the handshake');
    return await shakeHands(tcp, host, attempt);
  }
  if (answer === 'N' && way === 'asked') return tcp;
  if (answer !== 'E') throw coded('tls_absent', 'the server has no TLS');
  // Not even asked, such as while it starts.
  tcp.unshift(Buffer.from(answer));
  throw new LoginRefused(fieldsOf(await readMessage(tcp)), false);
}

function shakeHands(tcp: Socket, { host }: DatabaseHost, { settings, secrets }: Attempt) {
  const { mode, namesHost, isDirect, rootCertificates } = settings.tls;
  const name = host.replace(/\.$/, '');
  const verifies = rootCertificates !== undefined || mode.startsWith('verify-');
  const options: tls.ConnectionOptions = {
    ...secrets,
    ...(namesHost ? { servername: serverNameOf(name) } : {}),
    ...(isDirect ? { ALPNProtocols: ['postgresql'] } : {}),
    socket: tcp,
    rejectUnauthorized: verifies,
    checkServerIdentity: (_, certificate) =>
      mode === 'verify-full' ? tls.checkServerIdentity(name, certificate) : undefined,
  };
  return new Promise<tls.TLSSocket>((resolve, reject) => {
    const fail = (error: Error) => reject(failedHandshake(error));
    const socket = tls.connect(options, () => resolve(socket));
    socket.on('error', fail);
    socket.once('close', () => reject(coded('tls_failed', 'closed in the handshake')));
  });
}

/**
 * The files, read for each connection: certificates are renewed while a daemon runs.
 * @throws an error with code TLS_FILES and a line that names the parameter
 */
async function secretsOf({ tls: settings }: ConnectionSettings): Promise<tls.ConnectionOptions> {
  const { mode, rootCertificates: root, keyPassword } = settings;
  if (mode === 'disable') return {};
  const read = async (parameter: string, file: string | undefined) => {
    if (file === undefined) return undefined;
    try {
      return await readFile(file);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw coded(TLS_FILES, `${parameter}: ${file} cannot be read (${code})`);
    }
  };
  const ofSystem = root === 'system' ? tls.getCACertificates('system') : [];
  const secrets = {
    ca: root === 'system' ? ofSystem : await read('sslrootcert', root),
    crl: await read('sslcrl', settings.revocations),
    cert: await read('sslcert', settings.certificate),
    key: await read('sslkey', settings.key),
    passphrase: keyPassword,
    minVersion: settings.minVersion,
    maxVersion: settings.maxVersion,
  };
  try {
    const given = Object.entries(secrets).filter(([, value]) => value?.length);
    return { secureContext: tls.createSecureContext(Object.fromEntries(given)) };
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const files = 'sslrootcert, sslcrl, sslcert and sslkey must be PEM files that belong together';
    throw coded(TLS_FILES, `${files} (${code}); sslpassword opens the key`);
  }
}
