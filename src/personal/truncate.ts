import ipaddr from 'ipaddr.js';

/**
 * Shortens an IP address to its network (/24, /48), a date to its year, a postcode to its first part; null for anything else, which is
 * dropped. What was truncated once stays as it is.
 */
export function truncate(text: string): string | null {
  const trimmed = text.trim();
  return networkOf(trimmed) ?? yearOf(trimmed) ?? areaOf(trimmed);
}

function networkOf(text: string): string | null {
  const host = text.replace(/\/\d{1,3}$/, '').replace(/%.*$/, '');
  if (!isIpAddress(host)) return null;
  const address = ipaddr.process(host);
  const bits = address.kind() === 'ipv4' ? 24 : 48;
  const { IPv4, IPv6 } = ipaddr;
  const network = (bits === 24 ? IPv4 : IPv6).networkAddressFromCIDR(`${address}/${bits}`);
  return `${network}/${bits}`;
}

/** Returns true for an address in its usual form; a number alone is none. */
export function isIpAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (text.includes(':') && ipaddr.IPv6.isValid(text));
}

const year = '((?:1[89]|2[01])\\d\\d)';
const day = '\\d{1,2}';
const dates = [
  new RegExp(`^${year}$`),
  new RegExp(`^${year}([-/.])${day}(?:\\2${day})?(?:[T ].*)?$`, 's'),
  new RegExp(`^${year}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\\d|3[01])$`),
  new RegExp(`^${day}([-/.])${day}\\1${year}$`),
];

function yearOf(text: string): string | null {
  for (const date of dates) {
    const found = date.exec(text);
    if (found !== null) return found.find((part) => /^\d{4}$/.test(part)) ?? null;
  }
  return null;
}

/** Postcodes of letters and digits, by their first part: of Britain, Ireland and Canada. */
const lettered = /^([A-Z]{1,2}\d[A-Z\d]?)(?: ?\d[A-Z]{2}| ?\d[A-Z]\d| ?[A-Z\d]{4})?$/;
/** Postcodes of digits, at most two groups; a country or two letters may stand around them. */
const numbered = /^(?:[A-Z]{1,2}-)?(?:(\d{2,7})|(\d{2,6})[ -]\d{2,4}|(\d{4}) ?[A-Z]{2})$/;

function areaOf(text: string): string | null {
  const upper = text.toUpperCase();
  const letters = lettered.exec(upper)?.[1];
  if (letters !== undefined) return letters;
  const digits = numbered
    .exec(upper)
    ?.slice(1)
    .find((group) => group !== undefined);
  if (digits === undefined) return null;
  return digits.slice(0, digits.length === 4 ? 2 : 3);
}
