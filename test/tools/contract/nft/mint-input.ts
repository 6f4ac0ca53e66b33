/** Section 2.2 and its limits in section 8: valid and invalid input of mints. */
import {
  dataOf,
  mint,
  mintSequential,
  readToken,
  refusedNft,
  setExtraData,
} from '../client/endpoints.ts';
import type { Reply } from '../client/reply.ts';
import type { Service } from '../client/service.ts';
import { completeToken, newTokenId, TOKEN_URI, userToken, wallet } from '../client/test-data.ts';
import { equal, type Statement, statement } from '../statement.ts';

type Fields = Record<string, string | undefined>;
type Mint = 'mint' | 'mint-sequential';

/** Sends a valid mint with changed fields; undefined removes a field. */
export async function mintWith(service: Service, kind: Mint, changes: Fields): Promise<Reply> {
  const proper: Fields = {
    toAddr: await wallet(service),
    tokenURI: TOKEN_URI,
    ...(kind === 'mint' ? { tokenId: String(newTokenId()) } : {}),
    ...changes,
  };
  const form = Object.fromEntries(
    Object.entries(proper).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  return kind === 'mint' ? mint(service, form) : mintSequential(service, form);
}

/** JSON text of that many characters. */
export const jsonOf = (length: number) => `{"a":"${'x'.repeat(length - 8)}"}`;

const BOTH: Mint[] = ['mint', 'mint-sequential'];

const refused = (section: string, title: string, changes: Fields, kinds = BOTH): Statement[] =>
  kinds.map((kind) =>
    statement(section, `${title} (${kind})`, async (service) =>
      refusedNft(await mintWith(service, kind, changes), 400n),
    ),
  );

const taken = (section: string, title: string, changes: Fields): Statement[] =>
  BOTH.map((kind) =>
    statement(section, `${title} (${kind})`, async (service) => {
      dataOf(await mintWith(service, kind, changes));
    }),
  );

const address = (length: number) => `0x${'a'.repeat(length - 2)}`;

export const MINT_INPUT: Statement[] = [
  ...refused('2.2', 'toAddr has length 42: 41 characters are refused', { toAddr: address(41) }),
  ...refused('2.2', 'toAddr has length 42: 43 characters are refused', { toAddr: address(43) }),
  statement('2.2', 'toAddr is the wallet that owns the new token', async (service) => {
    const to = await wallet(service);
    const record = dataOf(await readToken(service, await completeToken(service, { to })));
    equal('token_owner', record.text('token_owner').toLowerCase(), to.toLowerCase());
  }),
  ...['abc', '1.5', ''].flatMap((tokenId) =>
    refused('2.2', `tokenId is an integer: "${tokenId}" is refused`, { tokenId }, ['mint']),
  ),
  statement('2.2', 'tokenId is the id of the minted token', async (service) => {
    const id = newTokenId();
    await completeToken(service, { id });
    equal('token_id', dataOf(await readToken(service, id)).integer('token_id'), id);
  }),
  statement('2.2', 'tokenURI arrives as it was sent in the form', async (service) => {
    const uri = 'https://example.com/ä?a=1+2&b=%20c d#é';
    const id = await completeToken(service, { uri });
    equal('token_uri', dataOf(await readToken(service, id)).text('token_uri'), uri);
  }),
  ...taken('2.2', 'metaData and extraData are optional', {}),
  ...refused('2.2', 'metaData is a string containing JSON: other text is refused', {
    metaData: '{"a":',
  }),
  ...taken('2.2', 'metaData of 1000 characters is taken', { metaData: jsonOf(1000) }),
  ...refused('2.2', 'metaData has max length 1000: 1001 characters are refused', {
    metaData: jsonOf(1001),
  }),
  ...refused('2.2', 'extraData is a string containing JSON: other text is refused', {
    extraData: 'nonsense',
  }),
  ...taken('2.2', 'extraData of 500 characters is taken', { extraData: jsonOf(500) }),
  ...refused('2.2', 'extraData has max length 500: 501 characters are refused', {
    extraData: jsonOf(501),
  }),
  statement('8', 'metaData of max length 1000 is read back whole', async (service) => {
    const id = await completeToken(service, { metaData: jsonOf(1000) });
    const text = dataOf(await readToken(service, id)).text('token_metadata');
    equal('token_metadata', text, jsonOf(1000));
  }),
  statement('8', 'extraData of max length 500 is read back whole', async (service) => {
    const id = await completeToken(service, { extraData: jsonOf(500) });
    const text = dataOf(await readToken(service, id)).text('token_extradata');
    equal('token_extradata', text, jsonOf(500));
  }),
  statement('8', 'extraData has max length 500 in set-extra-data', async (service) => {
    const id = await userToken(service);
    refusedNft(await setExtraData(service, id, { extraData: jsonOf(501) }), 400n);
    dataOf(await setExtraData(service, id, { extraData: jsonOf(500) }));
  }),
];
