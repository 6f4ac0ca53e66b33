/**
 * Logs in on an open connection and leaves it as if the driver had: what the server says of the
 * session is still to be read, and what the driver writes first, its own login, is dropped.
 */
import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Random } from '../../kernel/random.ts';
import { coded, encoded, fieldsOf, type Message, readMessage } from './messages.ts';
import { type Binding, canBind, type Scram, startScram } from './scram.ts';
import type { ConnectionSettings } from './settings.ts';

export interface Login {
  user: string;
  pass: string;
  database: string;
  /** Parameters of the session. */
  session: Readonly<Record<string, string>>;
  channelBinding: ConnectionSettings['channelBinding'];
  /** Asks for the state of a server that does not report it. */
  needsState: boolean;
  random: Random;
}

/** The server's own refusal, with its SQLSTATE. */
export class LoginRefused extends Error {
  override readonly name = 'PostgresError';
  readonly code: string;
  readonly severity = 'FATAL';
  /** The server had accepted the connection and asked who it is. */
  readonly wasAsked: boolean;

  constructor({ C: code = '08006', M: message = '' }: Record<string, string>, wasAsked: boolean) {
    super(message);
    // The one refusal that has no code of its own.
    this.code = code === '28000' && /client certificate/.test(message) ? NO_CERTIFICATE : code;
    this.wasAsked = wasAsked;
  }
}

const NO_CERTIFICATE = 'tls_client_certificate';
export const NO_BINDING = 'NO_CHANNEL_BINDING';
const PROTOCOL = 3 << 16;

/** What `target_session_attrs` asks for. */
export interface ServerState {
  isStandby: boolean;
  isReadOnly: boolean;
}

/** @throws LoginRefused, and errors with a code */
export async function logIn(socket: Socket, login: Login): Promise<ServerState> {
  const { user, database } = login;
  const parameters = { user, database, client_encoding: 'UTF8', ...login.session };
  const pairs = Object.entries(parameters).filter(([, value]) => value !== '');
  socket.write(encoded('', PROTOCOL, ...pairs.flat(), Buffer.alloc(1)));
  const accepted = await authenticate(socket, login);
  const reported = new Map<string, string>();
  const kept = [accepted.bytes];
  for (;;) {
    const message = await readMessage(socket);
    kept.push(message.bytes);
    if (message.type === 'E') throw new LoginRefused(fieldsOf(message), true);
    if (message.type === 'S') {
      const [name = '', value = ''] = message.body.toString('utf8').split('\0');
      reported.set(name, value);
    }
    if (message.type !== 'Z') continue;
    const unknown = { isStandby: false, isReadOnly: false };
    const state = stateOf(reported) ?? (login.needsState ? await askState(socket) : unknown);
    leaveToDriver(socket, Buffer.concat(kept));
    return state;
  }
}

function stateOf(reported: ReadonlyMap<string, string>): ServerState | undefined {
  const standby = reported.get('in_hot_standby');
  const readOnly = reported.get('default_transaction_read_only');
  if (standby === undefined || readOnly === undefined) return undefined;
  return { isStandby: standby === 'on', isReadOnly: readOnly === 'on' };
}

/** A pooler does not report it. */
async function askState(socket: Socket): Promise<ServerState> {
  socket.write(
    encoded('Q', "select pg_is_in_recovery(), current_setting('transaction_read_only')::boolean"),
  );
  let values: string[] = [];
  for (;;) {
    const message = await readMessage(socket);
    if (message.type === 'E') throw new LoginRefused(fieldsOf(message), true);
    // Two values of one byte, each after its length.
    if (message.type === 'D')
      values = [6, 11].map((at) => message.body.toString('latin1', at, at + 1));
    if (message.type === 'Z')
      return { isStandby: values[0] === 't', isReadOnly: values[1] === 't' };
  }
}

/**
 * The driver gathers what it writes up to 1 KiB. What it has gathered when a connection ends it
 * keeps, before its login on the next one, and then gathers for ever. A parameter of the session
 * makes the login so long that it is written at once, with all that was kept.
 */
export const LONG_LOGIN = { application_name: 'x'.repeat(1_024) };

function leaveToDriver(socket: Socket, received: Buffer): void {
  const write = socket.write.bind(socket);
  socket.unshift(received);
  socket.write = () => {
    socket.write = write;
    return true;
  };
}

const OK = 0;
const PASSWORD = 3;
const MD5 = 5;
const SASL = 10;
const SASL_CONTINUE = 11;
const SASL_FINAL = 12;

/** Returns the message that says that the login is accepted. */
async function authenticate(socket: Socket, login: Login): Promise<Message> {
  const { user, pass, channelBinding } = login;
  let scram: Scram | undefined;
  let isProved = false;
  let wasAsked = false;
  for (;;) {
    const message = await readMessage(socket);
    const { type, body } = message;
    if (type === 'E') throw new LoginRefused(fieldsOf(message), wasAsked);
    if (type === 'N') continue;
    if (type !== 'R') throw coded('08P01', 'not an answer to a log-in');
    wasAsked = true;
    const asked = body.readInt32BE(0);
    const text = body.subarray(4).toString('utf8');
    const isBound = scram?.mechanism === 'SCRAM-SHA-256-PLUS';
    if (channelBinding === 'require' && (asked === OK ? !(isBound && isProved) : asked < SASL))
      throw coded(NO_BINDING, 'the server does not bind the channel');
    if (asked === OK) {
      if (scram && !isProved) throw coded('08P01', 'the server has not proved itself');
      return message;
    }
    if (asked === PASSWORD) socket.write(encoded('p', pass));
    else if (asked === MD5) socket.write(encoded('p', md5Answer(user, pass, body.subarray(4))));
    else if (asked === SASL) {
      const binding = bindingOf(socket, text.split('\0'), channelBinding);
      scram = startScram(pass, nonceOf(login.random), binding);
      const first = Buffer.from(scram.first);
      socket.write(encoded('p', scram.mechanism, first.length, first));
    } else if (asked === SASL_CONTINUE && scram) {
      socket.write(encoded('p', Buffer.from(await scram.final(text))));
    } else if (asked === SASL_FINAL && scram) {
      scram.verify(text);
      isProved = true;
    } else throw coded('0A000', `authentication ${asked}`);
  }
}

/** @throws an error with code NO_CHANNEL_BINDING when it is demanded and cannot be had */
function bindingOf(
  socket: Socket,
  offered: readonly string[],
  wanted: Login['channelBinding'],
): Binding {
  const certificate =
    socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.raw : undefined;
  const canBeBound = certificate !== undefined && canBind(certificate);
  if (canBeBound && wanted !== 'disable' && offered.includes('SCRAM-SHA-256-PLUS'))
    return { certificate };
  if (wanted === 'require') throw coded(NO_BINDING, 'the server does not bind the channel');
  return canBeBound && wanted === 'prefer' ? 'unavailable' : 'none';
}

const NONCE_BYTES = 18;

function nonceOf(random: Random): string {
  return Buffer.from(random.bytes(NONCE_BYTES)).toString('base64');
}

function md5Answer(user: string, password: string, salt: Buffer): string {
  const hashed = md5(Buffer.from(password + user));
  return `md5${md5(Buffer.concat([Buffer.from(hashed), salt]))}`;
}

function md5(bytes: Buffer): string {
  return createHash('md5').update(bytes).digest('hex');
}
