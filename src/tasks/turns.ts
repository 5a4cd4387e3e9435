/** Environments that are remembered; the others count as not served lately. */
const mostRemembered = 1_000;

/**
 * Whose turn it is in this process: of environments that have the same number of tasks under way, the one that was served
 * longest ago. How many are under way stands in the ledger; this is only what tells equals apart, and may be lost.
 */
export class Turns {
  readonly #served = new Set<number>();

  /** Environments that were served, longest ago first. */
  get served(): number[] {
    return [...this.#served];
  }

  took(environmentId: number): void {
    // A Set keeps the order of insertion: taken out and put in again, it is last.
    this.#served.delete(environmentId);
    this.#served.add(environmentId);
    const [oldest] = this.#served;
    if (this.#served.size > mostRemembered && oldest !== undefined) this.#served.delete(oldest);
  }
}
