import ipaddr from 'ipaddr.js';
import { isMailAddress } from '../../base/mail-address.ts';
import { type Look, looks } from '../../domain/looks.ts';

const hasLook: Readonly<Record<Look, (text: string) => boolean>> = {
  email: isMailAddress,
  // E.164 numbers, since a number without its country could be anything.
  phone: (text) => /^\+[1-9]\d{7,14}$/.test(text.replace(/[ ().\-/]/g, '')),
  card: isCardNumber,
  ip: isIpAddress,
};

/** At most a tenth of the values may differ. */
const leastShare = 0.9;
/** A tenth of all digit strings pass as card numbers. */
const leastCards = 5;

/** Returns what nearly all values of a column look like, or `null`. */
export function lookOf(values: Iterable<string>): Look | null {
  const counts: Record<Look, number> = { email: 0, phone: 0, card: 0, ip: 0 };
  let all = 0;
  for (const text of values) {
    all++;
    for (const look of looks) if (hasLook[look](text)) counts[look]++;
  }
  const found = looks.find((look) => counts[look] >= Math.max(1, leastShare * all));
  return found === undefined || (found === 'card' && counts.card < leastCards) ? null : found;
}

/** Accepts the usual form only: a plain number is not an address. */
function isIpAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (text.includes(':') && ipaddr.IPv6.isValid(text));
}

function isCardNumber(text: string): boolean {
  const digits = text.replace(/[ -]/g, '');
  if (!/^[2-6]\d{12,18}$/.test(digits)) return false;
  let sum = 0;
  for (let place = 0; place < digits.length; place++) {
    const digit = Number(digits[digits.length - 1 - place]);
    const doubled = place % 2 === 0 ? digit : digit * 2;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}
