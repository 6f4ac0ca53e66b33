/**
 * The script of the list of writes: what is chosen stands in the address, so that it can be shared.
 */
import { ELEMENT_SCRIPT } from './elements.ts';
import { KEY_SCRIPT } from './key.ts';

export const OPERATIONS_SCRIPT = `'use strict';${KEY_SCRIPT}${ELEMENT_SCRIPT}
const ADVICE = {
  undecided: 'The evidence does not decide these: open one, propose its outcome with a reason; ' +
    'a person of another owner approves.',
  queued: 'These wait for the service; open one to cancel it.',
};
const chosen = new URLSearchParams(location.search);
at('wanted').value = chosen.get('state') || '';
at('words').value = chosen.get('words') || '';
const filterOf = (words) => {
  if (words === '') return {};
  if (words.length === 42) return { addr: words };
  if (words.length === 66) return { tx_hash: words };
  return /^[0-9]+$/.test(words) ? { tx_log_no: words } : { reference: words };
};
const rowOf = (operation) =>
  row(
    link('/operations/' + encodeURIComponent(operation.id), time(operation.recorded_at)),
    operation.kind,
    operation.state,
    operation.from_addr || (operation.operation_no ? 'operator ' + operation.operation_no : '–'),
    operation.to_addr || '–',
    operation.amount || '–',
    operation.tx_log_no || operation.tx_hash || '–',
    operation.reference || '–',
  );
let cursor = null;
const load = async () => {
  const words = at('words').value.trim();
  const query = new URLSearchParams({ limit: '50', ...filterOf(words) });
  if (at('wanted').value) query.set('state', at('wanted').value);
  if (cursor) query.set('cursor', cursor);
  const page = await (await ask('/api/operations?' + query)).json();
  const rows = page.data.map(rowOf);
  if (cursor) at('rows').append(...rows);
  else fill('rows', rows, 8, 'None.');
  cursor = page.next_cursor;
  at('more').hidden = cursor === null;
};
connect(async () => {
  cursor = null;
  await load();
  pill('operations', '');
  at('advice').textContent = ADVICE[at('wanted').value] || '';
  at('board').hidden = false;
});
at('search').addEventListener('submit', (event) => {
  event.preventDefault();
  const words = at('words').value.trim();
  if (words.startsWith('op_')) location.assign('/operations/' + encodeURIComponent(words));
  else location.search = new URLSearchParams({ state: at('wanted').value, words }).toString();
});
at('more').addEventListener('click', () => load().catch((error) => say(error.message)));
`;
