/** The packages that some kinds of destinations need, which may not be installed. */
import { createRequire } from 'node:module';
import type { DestinationKind } from '../../../resources/delivery/destination.ts';

const PACKAGES: Partial<Record<DestinationKind, readonly string[]>> = {
  kafka: ['@platformatic/kafka'],
  nats: ['@nats-io/transport-node', '@nats-io/jetstream'],
  rabbitmq: ['amqplib'],
};

/** The packages that a kind of destination needs and that are not installed. */
export function missingPackages(
  kind: DestinationKind,
  resolve: (name: string) => unknown = createRequire(import.meta.url).resolve,
): string[] {
  return (PACKAGES[kind] ?? []).filter((name) => {
    try {
      resolve(name);
      return false;
    } catch (error) {
      return isMissing(error);
    }
  });
}

/** True for the error of an import that found no package. */
export function isMissing(error: unknown): boolean {
  return /^(?:ERR_)?MODULE_NOT_FOUND$/.test(String((error as { code?: unknown }).code));
}
