// Addresses are checked more strictly than the standards require. Quoted parts, comments, groups,
// address literals and display names are refused. Therefore, an address cannot end a header line or
// add a recipient. It also cannot be mistaken for a command by a mail server, or for an option
// (`-oQ…`) by a mail program.
const local = /^[a-z0-9!#$%&'*+/=?^_`{|}~][a-z0-9!#$%&'*+/=?^_`{|}~-]*(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/**
 * Returns true for a single plain ASCII address. Its domain must contain a dot (`a@b` fails) or be
 * `localhost`.
 */
export function isMailAddress(text: string): boolean {
  const at = text.lastIndexOf('@');
  const name = text.slice(0, at);
  const domain = text.slice(at + 1);
  if (at < 1 || name.length > 64 || domain.length > 253 || text.length > 254) return false;
  // Some mail programs would decode an encoded word such as `=?utf-8?q?…?=` to another address.
  if (name.includes('=?')) return false;
  const labels = domain.split('.');
  if (labels.length < 2 && domain !== 'localhost') return false;
  return local.test(name) && labels.every((part) => label.test(part));
}
