/** Names of targets: `wallet:<addr, lower case>`, `contract:<id>`, `token:<contract>:<token>`. */
import { addressKey } from '../kernel/addresses.ts';

export type TargetRef =
  | { kind: 'wallet'; addr: string }
  | { kind: 'contract'; contractId: bigint }
  | { kind: 'token'; contractId: bigint; tokenId: bigint };

export function targetName(ref: TargetRef): string {
  switch (ref.kind) {
    case 'wallet':
      return `wallet:${addressKey(ref.addr)}`;
    case 'contract':
      return `contract:${ref.contractId}`;
    case 'token':
      return `token:${ref.contractId}:${ref.tokenId}`;
  }
}

/** The columns of a target's row. */
export function toTarget(ref: TargetRef) {
  return {
    name: targetName(ref),
    kind: ref.kind,
    addr: ref.kind === 'wallet' ? ref.addr : null,
    contractId: ref.kind === 'wallet' ? null : ref.contractId,
    tokenId: ref.kind === 'token' ? ref.tokenId : null,
  };
}
