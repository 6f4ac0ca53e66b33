/** Section 5, rule 3: the kind of token that each resource endpoint accepts. */
import { dataOf, refusedNft, refusedPayment } from '../client/endpoints.ts';
import { ENDPOINTS, type EndpointName, sharedReply } from '../client/shared-replies.ts';
import { nonce } from '../client/test-data.ts';
import { type Statement, statement } from '../statement.ts';

const USER_ENDPOINTS = ['NFT set-extra-data', 'NFT transfer-from', 'own wallet lookup'];

export const TOKEN_KINDS: Statement[] = (Object.keys(ENDPOINTS) as EndpointName[]).flatMap(
  (name) => {
    const [kind, other] = USER_ENDPOINTS.includes(name)
      ? (['user', 'client'] as const)
      : (['client', 'user'] as const);
    const refused = name.startsWith('NFT')
      ? (reply: Parameters<typeof refusedNft>[0]) => refusedNft(reply, 401n)
      : (reply: Parameters<typeof refusedPayment>[0]) => void refusedPayment(reply, '401');
    return [
      statement('4', `${name} answers JSON {status: 200, data: object}`, async (service) => {
        dataOf(await sharedReply(service, name));
      }),
      statement('5', `${name} takes a ${kind} token`, async (service) => {
        dataOf(await sharedReply(service, name));
      }),
      statement('5', `${name} refuses a ${other} token`, async (service) =>
        refused(await ENDPOINTS[name](service, other)),
      ),
      statement('5', `${name} refuses a request without Authorization`, async (service) =>
        refused(await ENDPOINTS[name](service, 'anonymous')),
      ),
      statement('5', `${name} refuses a token that was never issued`, async (service) =>
        refused(await ENDPOINTS[name](service, { bearer: nonce() })),
      ),
    ];
  },
);
