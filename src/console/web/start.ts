/** Script of the start page: status and latest reports. */
import { ELEMENT_SCRIPT } from './elements.ts';
import { KEY_SCRIPT } from './key.ts';

export const START_SCRIPT = `'use strict';${KEY_SCRIPT}${ELEMENT_SCRIPT}
const REFRESH_MS = 5000;
const MOODS = { active: 'good', announced: 'warn', maintenance: 'warn', unreachable: 'bad' };
const tile = (count, name, bad, href) => {
  const made = element(href ? 'a' : 'div', undefined, bad ? 'tile bad' : 'tile');
  if (href) made.href = href;
  made.append(element('b', count), element('span', name, 'muted'));
  return made;
};
const age = (ms) => {
  if (ms < 1000) return ms + ' ms';
  if (ms < 120000) return Math.round(ms / 1000) + ' s';
  return ms < 7200000 ? Math.round(ms / 60000) + ' min' : Math.round(ms / 3600000) + ' h';
};
const stateLink = (state) => link('/operations?state=' + encodeURIComponent(state), state);
const showStatus = (status) => {
  const { service, budget, stages, open, targets } = status;
  const states = Object.entries(open.operations);
  const backlog = stages.reduce((sum, stage) => sum + stage.waiting, 0);
  const writes = states.reduce((sum, [, count]) => sum + count, 0);
  const undecided = open.operations.undecided || 0;
  const { freeze } = status;
  at('freeze').hidden = !freeze;
  if (freeze) {
    const who = ' by ' + freeze.frozen_by + ': ' + freeze.reason;
    at('freeze').textContent = 'Writes are frozen since ' + time(freeze.frozen_at) + who;
  }
  pill('service ' + service.state.replace('_', ' '), MOODS[service.state] || '');
  at('tiles').replaceChildren(
    tile(writes, 'open operations'),
    tile(undecided, 'undecided', undecided > 0, '/operations?state=undecided'),
    tile(open.drifts, 'open drifts', open.drifts > 0),
    tile(backlog, 'backlog of all stages'),
    tile(targets, 'targets polled'),
  );
  const { start, end, message } = service.announced || {};
  const announced = [start, end, message].filter(Boolean).join(' – ');
  const since = service.since ? ' since ' + time(service.since) : '';
  facts('service', [
    ['State', service.state.replace('_', ' ') + since],
    ...(announced ? [['Announced', announced]] : []),
    ['Polls allowed', budget.rate_per_s.toFixed(2) + ' per second'],
    ['Polls waiting', String(budget.waiting)],
    ['Polled at least every', age(status.observation_age_max_ms)],
  ]);
  fill('stages', stages.map((s) => row(s.stage, String(s.waiting), age(s.lag_ms))), 3, 'Nothing.');
  const rows = states.map(([state, count]) => row(stateLink(state), String(count)));
  fill('operations', rows, 2, 'None.');
  at('at').textContent = 'as of ' + time(status.now);
};
const showReports = ({ data }) => {
  const rows = data.map((report) => {
    const period = time(report.period_from) + ' to ' + time(report.period_to);
    const name = link('/reports/' + encodeURIComponent(report.id), period);
    const verdict = report.breaks > 0 ? report.breaks + ' breaks' : report.verdict;
    const mood = report.breaks > 0 ? 'bad' : '';
    return row(name, element('span', verdict, mood), time(report.created_at));
  });
  fill('reports', rows, 3, 'None yet.');
};
const refresh = connect(async () => {
  const paths = ['/api/status', '/api/reports?limit=5'];
  const [status, reports] = await Promise.all(paths.map((path) => callApi(path)));
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
