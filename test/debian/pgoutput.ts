/** Reads what pg_recvlogical writes of the plugin pgoutput, protocol version 1. */

export interface Change {
  kind: 'insert' | 'update';
  table: string;
  /** Values as text; null and unchanged long ones are absent. */
  row: Record<string, string>;
}

interface Relation {
  name: string;
  columns: string[];
}

export function changesOf(bytes: Buffer): Change[] {
  const relations = new Map<number, Relation>();
  const changes: Change[] = [];
  let at = 0;
  const skip = (n: number): number => {
    const from = at;
    at += n;
    return from;
  };
  const byte = () => bytes.readUInt8(skip(1));
  const int16 = () => bytes.readInt16BE(skip(2));
  const int32 = () => bytes.readInt32BE(skip(4));
  const text = () => {
    const end = bytes.indexOf(0, at);
    const found = bytes.toString('utf8', at, end);
    at = end + 1;
    return found;
  };
  const relation = () => {
    const id = int32();
    text();
    const name = text();
    byte();
    const columns = Array.from({ length: int16() }, () => {
      byte();
      const column = text();
      skip(8);
      return column;
    });
    relations.set(id, { name, columns });
  };
  const tuple = ({ columns }: Relation) => {
    const row: Record<string, string> = {};
    for (let n = int16(), i = 0; i < n; i++) {
      if (String.fromCharCode(byte()) !== 't') continue;
      const length = int32();
      row[columns[i] ?? ''] = bytes.toString('utf8', at, at + length);
      skip(length);
    }
    return row;
  };
  const change = (kind: Change['kind']) => {
    const of = relations.get(int32()) ?? { name: '?', columns: [] };
    // Before a new row there may be its key.
    if (String.fromCharCode(byte()) !== 'N') {
      tuple(of);
      byte();
    }
    changes.push({ kind, table: of.name, row: tuple(of) });
  };
  const read: Record<string, () => void> = {
    B: () => skip(20),
    C: () => skip(25),
    R: relation,
    I: () => change('insert'),
    U: () => change('update'),
  };
  while (at < bytes.length) {
    const kind = String.fromCharCode(byte());
    const reader = read[kind];
    if (!reader) throw new Error(`message ${kind} at ${at}`);
    reader();
    // The end of its line.
    skip(1);
  }
  return changes;
}
