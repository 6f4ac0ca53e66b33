/** Names of what is observed: `wallet:<addr, lower case>` and `token:<contract>:<token>`. Pure. */
import { addressKey } from '../kernel/addresses.ts';

export type ObjectRef =
  | { kind: 'wallet'; addr: string }
  | { kind: 'contract'; contractId: bigint }
  | { kind: 'token'; contractId: bigint; tokenId: bigint };

export function objectName(ref: ObjectRef): string {
  switch (ref.kind) {
    case 'wallet':
      return `wallet:${addressKey(ref.addr)}`;
    case 'contract':
      return `contract:${ref.contractId}`;
    case 'token':
      return `token:${ref.contractId}:${ref.tokenId}`;
  }
}
