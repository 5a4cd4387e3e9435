import ipaddr from 'ipaddr.js';
import { isMailAddress } from '../../base/mail-address.ts';
import { type Look, looks } from '../../domain/looks.ts';

const hasLook: Readonly<Record<Look, (text: string) => boolean>> = {
  email: isMailAddress,
  // Only E.164 numbers match, because a number without a country code is ambiguous.
  phone: (text) => /^\+[1-9]\d{7,14}$/.test(text.replace(/[ ().\-/]/g, '')),
  card: isCardNumber,
  ip: isIpAddress,
};

/** Minimum share of a column's values that must have the look. */
const leastShare = 0.9;
/**
 * Minimum number of card numbers in a column. By chance, a tenth of all strings of digits have a
 * valid check digit.
 */
const leastCards = 5;

/** The look shared by nearly all values of a column, or `null`. */
export function lookOf(values: Iterable<string>): Look | null {
  const counts: Record<Look, number> = { email: 0, phone: 0, card: 0, ip: 0 };
  let all = 0;
  for (const text of values) {
    all++;
    for (const kind of looks) if (hasLook[kind](text)) counts[kind]++;
  }
  const look = looks.find((kind) => counts[kind] >= Math.max(1, leastShare * all));
  return look === undefined || (look === 'card' && counts.card < leastCards) ? null : look;
}

/** A plain number does not count as an address. */
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
