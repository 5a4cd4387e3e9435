import { escapeCopy, toByteString } from '../formats/json-text.ts';
import type { DatedBuffer } from './dated-buffer.ts';
import { UNCOUNTED } from './row-buffer.ts';

interface Membership {
  first: string;
  /** The latest event, of equal times the last one. */
  last: string;
  record: number;
}

/**
 * The users of a chunk's events of another product: each was there at its first event, and in the company of the latest one that
 * names one. Two dated rows for each company of a user say so, however many events there are.
 */
export class EventUsers {
  /** By user, then by company; null: of events that name none. */
  readonly #users = new Map<string, Map<string | null, Membership>>();
  #acceptedAt = '';

  reset(acceptedAt: string): void {
    this.#users.clear();
    this.#acceptedAt = acceptedAt;
  }

  /** Notes an event that became a row. `at` is as `Instant` writes it; null, and what is to come, is when the load was accepted. */
  add(user: string, company: string | null, at: string | null, record: number): void {
    const time = at === null || at > this.#acceptedAt ? this.#acceptedAt : at;
    const companies = this.#users.get(user) ?? new Map<string | null, Membership>();
    if (companies.size === 0) this.#users.set(user, companies);
    const known = companies.get(company);
    if (known === undefined) companies.set(company, { first: time, last: time, record });
    else if (time < known.first) known.first = time;
    else if (time >= known.last) Object.assign(known, { last: time, record });
  }

  /** To be called when all events are there. */
  addTo(dated: DatedBuffer): void {
    for (const [user, companies] of this.#users) {
      const key = escapeCopy(toByteString(user));
      for (const [company, { first, last, record }] of companies) {
        const own = company === null ? null : escapeCopy(toByteString(company));
        dated.add('users', key, first, '', own, UNCOUNTED, record);
        if (own !== null && last !== first) dated.add('users', key, last, '', own, UNCOUNTED, record);
      }
    }
  }
}
