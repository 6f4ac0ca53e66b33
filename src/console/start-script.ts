/**
 * The script of the start page: reads the status and the latest reports, and shows them as text.
 */
import { KEY_SCRIPT } from './key-script.ts';

export const START_SCRIPT = `'use strict';${KEY_SCRIPT}
const REFRESH_MS = 5000;
const MOODS = { active: 'good', announced: 'warn', maintenance: 'warn', unreachable: 'bad' };
const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const row = (...cells) => {
  const made = element('tr');
  for (const cell of cells) {
    const td = element('td');
    td.append(cell);
    made.append(td);
  }
  return made;
};
const fill = (id, rows, width, empty) => {
  const none = row(element('span', empty, 'muted'));
  none.firstChild.colSpan = width;
  at(id).replaceChildren(...(rows.length > 0 ? rows : [none]));
};
const tile = (count, name, bad) => {
  const made = element('div', undefined, bad ? 'tile bad' : 'tile');
  made.append(element('b', count), element('span', name, 'muted'));
  return made;
};
const time = (text) => (text ? text.slice(0, 16).replace('T', ' ') + ' UTC' : '–');
const age = (ms) => {
  if (ms < 1000) return ms + ' ms';
  if (ms < 120000) return Math.round(ms / 1000) + ' s';
  return ms < 7200000 ? Math.round(ms / 60000) + ' min' : Math.round(ms / 3600000) + ' h';
};
const facts = (pairs) =>
  at('service').replaceChildren(
    ...pairs.flatMap(([name, value]) => [element('dt', name), element('dd', value)]),
  );
const showStatus = (status) => {
  const { service, budget, stages, open, objects } = status;
  const states = Object.entries(open.operations);
  const backlog = stages.reduce((sum, stage) => sum + stage.waiting, 0);
  const writes = states.reduce((sum, [, count]) => sum + count, 0);
  const undecided = open.operations.undecided || 0;
  pill('service ' + service.state.replace('_', ' '), MOODS[service.state] || '');
  at('tiles').replaceChildren(
    tile(writes, 'open operations'),
    tile(undecided, 'wait for people', undecided > 0),
    tile(open.drifts, 'open drifts', open.drifts > 0),
    tile(backlog, 'backlog of all stages'),
    tile(objects, 'objects observed'),
  );
  const { start, end, message } = service.announced || {};
  const announced = [start, end, message].filter(Boolean).join(' – ');
  const since = service.since ? ' since ' + time(service.since) : '';
  facts([
    ['State', service.state.replace('_', ' ') + since],
    ...(announced ? [['Announced', announced]] : []),
    ['Looks allowed', budget.rate_per_s.toFixed(2) + ' per second'],
    ['Looks waiting', String(budget.waiting)],
    ['Looked at at least every', age(status.look_age_max_ms)],
  ]);
  fill('stages', stages.map((s) => row(s.stage, String(s.waiting), age(s.lag_ms))), 3, 'Nothing.');
  fill('operations', states.map(([state, count]) => row(state, String(count))), 2, 'None.');
  at('at').textContent = 'as of ' + time(status.now);
};
const showReports = ({ data }) => {
  const rows = data.map((report) => {
    const link = element('a', time(report.period_from) + ' to ' + time(report.period_to));
    link.href = '/reports/' + encodeURIComponent(report.id);
    const verdict = report.breaks > 0 ? report.breaks + ' breaks' : report.verdict;
    const mood = report.breaks > 0 ? 'bad' : '';
    return row(link, element('span', verdict, mood), time(report.created_at));
  });
  fill('reports', rows, 3, 'None yet.');
};
const refresh = connect(async () => {
  const [status, reports] = await Promise.all([ask('/api/status'), ask('/api/reports?limit=5')]);
  showStatus(await status.json());
  showReports(await reports.json());
  at('board').hidden = false;
  at('forget').hidden = false;
});
at('forget').addEventListener('click', () => {
  at('board').hidden = true;
  at('forget').hidden = true;
  pill('not connected', '');
  askForKey('');
});
setInterval(() => {
  if (!document.hidden && sessionStorage.getItem(KEY)) refresh();
}, REFRESH_MS);
`;
