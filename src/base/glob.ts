type Unit = string | ((character: string) => boolean);

const STAR = '*';

/**
 * Returns a test of a whole string, where `*` matches any text. After a mismatch, the text that the
 * last star matches is extended by one character. Extending the text of an earlier star could not
 * help. The time is at most the product of the lengths. A regular expression could need time that
 * is exponential in the number of stars.
 */
export function createGlob(pattern: string | readonly Unit[]): (text: string) => boolean {
  const units = [...pattern];
  return (text) => matches(units, [...text]);
}

function matches(units: readonly Unit[], text: readonly string[]): boolean {
  let unit = 0;
  let at = 0;
  let star = -1;
  let starEnd = 0;
  while (at < text.length) {
    if (units[unit] === STAR) {
      star = unit++;
      starEnd = at;
    } else if (isMatch(units[unit], text[at] ?? '')) {
      unit++;
      at++;
    } else if (star >= 0) {
      unit = star + 1;
      at = ++starEnd;
    } else return false;
  }
  while (units[unit] === STAR) unit++;
  return unit === units.length;
}

function isMatch(unit: Unit | undefined, character: string): boolean {
  return typeof unit === 'function' ? unit(character) : unit === character;
}
