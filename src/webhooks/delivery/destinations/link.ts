/** A connection to a broker, and what a kind of broker is made of. */
import type { Message } from '../http/request.ts';
import type { Network } from './network.ts';

/** A connection that the deliveries of an endpoint share. */
export interface Link {
  /** False once it cannot be used any more. */
  isOpen(): boolean;
  /** Resolves with what the broker answered, once it has stored the message. */
  send(message: Message): Promise<Record<string, unknown>>;
  /** Ends it at once. Never rejects. */
  close(): Promise<void>;
}

export interface BrokerDriver<Settings> {
  /** @param timeoutMs of a connection */
  open(settings: Settings, network: Network, timeoutMs: number): Promise<Link>;
  /** Our codes of attempts by the codes and names of the driver's errors. */
  faults: Readonly<Record<string, string>>;
}

/** Tries the servers in their order. @throws Error of the last one */
export async function firstOf<T>(
  servers: readonly string[],
  open: (server: string) => Promise<T>,
): Promise<T> {
  const [server = '', ...others] = servers;
  try {
    return await open(server);
  } catch (error) {
    if (others.length === 0) throw error;
    return firstOf(others, open);
  }
}
