/** A drift in words of people. Pure. */
/** Amounts are decimal strings, instants RFC 3339. */
export interface DriftFacts {
  addr: string;
  /** Null while only its bounds are known. */
  amount: string | null;
  amount_min: string;
  amount_max: string;
  /** Start of the last poll that did not show it; null: none is known. */
  window_from: string | null;
  /** Start of the first poll that showed it. */
  window_to: string;
}

/**
 * What happened, as one sentence.
 * @param timeText how an instant is shown; of `<day> <time>` the same day is named once
 */
export function sentenceOf(drift: DriftFacts, timeText = (iso: string) => iso): string {
  const { addr, amount, window_from, window_to } = drift;
  const from = window_from === null ? null : timeText(window_from);
  const when = windowText(from, timeText(window_to));
  const why = 'none of our operations explains it';
  if (amount === null)
    return `The balance of wallet ${addr} changed by ${changeText(drift)} ${when}; ${why}.`;
  const size = amount.replace('-', '');
  const verb = amount.startsWith('-') ? 'left' : 'came to';
  return `${size} ${size === '1' ? 'token' : 'tokens'} ${verb} wallet ${addr} ${when}; ${why}.`;
}

/** The signed amount, or its bounds. */
export function changeText({
  amount,
  amount_min: min,
  amount_max: max,
}: Pick<DriftFacts, 'amount' | 'amount_min' | 'amount_max'>): string {
  const signed = (text: string) => (/^[1-9]/.test(text) ? `+${text}` : text);
  return amount === null ? `${signed(min)} to ${signed(max)}` : signed(amount);
}

function windowText(from: string | null, to: string): string {
  if (from === null) return `before ${to}`;
  const [day, start] = from.split(' ');
  const [endDay, end] = to.split(' ');
  if (start === undefined || day !== endDay) return `between ${from} and ${to}`;
  return `on ${day} between ${start} and ${end}`;
}
