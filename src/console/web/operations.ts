/** Script of the list of operations; state and search text are part of the URL. */
import { ELEMENT_SCRIPT } from './elements.ts';
import { KEY_SCRIPT } from './key.ts';

export const OPERATIONS_SCRIPT = `'use strict';${KEY_SCRIPT}${ELEMENT_SCRIPT}
const ADVICE = {
  undecided: 'The evidence does not decide these operations. Open one to propose its outcome; ' +
    'another owner approves.',
  queued: 'These operations wait for the service. Open one to cancel it.',
};
const chosen = new URLSearchParams(location.search);
at('chosen-state').value = chosen.get('state') || '';
at('query').value = chosen.get('query') || '';
const filterOf = (text) => {
  if (text === '') return {};
  if (text.length === 42) return { addr: text };
  if (text.length === 66) return { tx_hash: text };
  return /^[0-9]+$/.test(text) ? { tx_log_no: text } : { reference: text };
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
  const text = at('query').value.trim();
  const query = new URLSearchParams({ limit: '50', ...filterOf(text) });
  if (at('chosen-state').value) query.set('state', at('chosen-state').value);
  if (cursor) query.set('cursor', cursor);
  const page = await (await callApi('/api/operations?' + query)).json();
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
  at('advice').textContent = ADVICE[at('chosen-state').value] || '';
  at('board').hidden = false;
});
at('search').addEventListener('submit', (event) => {
  event.preventDefault();
  const query = at('query').value.trim();
  if (query.startsWith('op_')) location.assign('/operations/' + encodeURIComponent(query));
  else location.search = new URLSearchParams({ state: at('chosen-state').value, query }).toString();
});
at('more').addEventListener('click', () => load().catch((error) => showProblem(error.message)));
`;
