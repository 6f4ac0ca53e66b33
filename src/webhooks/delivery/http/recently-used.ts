/** A map of at most so many entries: a new one displaces the one used least lately. Pure. */
export class RecentlyUsed<K, V> {
  /** The last of them is the one that was used last. */
  private readonly entries = new Map<K, V>();
  private readonly max: number;
  private readonly onDisplaced: (value: V) => void;

  /** @param onDisplaced called with a value that a new one has displaced */
  constructor(max: number, onDisplaced: (value: V) => void = () => {}) {
    this.max = max;
    this.onDisplaced = onDisplaced;
  }

  get(key: K): V | undefined {
    const value = this.entries.get(key);
    if (value !== undefined) this.put(key, value);
    return value;
  }

  set(key: K, value: V): void {
    this.put(key, value);
    const [oldest] = this.entries;
    if (this.entries.size <= this.max || !oldest) return;
    this.entries.delete(oldest[0]);
    this.onDisplaced(oldest[1]);
  }

  delete(key: K): void {
    this.entries.delete(key);
  }

  values(): V[] {
    return [...this.entries.values()];
  }

  private put(key: K, value: V): void {
    this.entries.delete(key);
    this.entries.set(key, value);
  }
}
