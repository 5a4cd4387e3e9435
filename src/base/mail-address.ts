// The check of addresses is stricter than the standards. It refuses quoted parts, comments, groups,
// address literals and display names. Therefore, an address can neither end a header line, nor add
// a recipient, nor look like a command to a mail server or an option (`-oQ…`) to a mail program.
const local = /^[a-z0-9!#$%&'*+/=?^_`{|}~][a-z0-9!#$%&'*+/=?^_`{|}~-]*(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** True for one plain ASCII address whose domain has a dot or is `localhost`. */
export function isMailAddress(text: string): boolean {
  const at = text.lastIndexOf('@');
  const name = text.slice(0, at);
  const domain = text.slice(at + 1);
  if (at < 1 || name.length > 64 || domain.length > 253 || text.length > 254) return false;
  // Some programs would decode `=?utf-8?q?…?=` to another address.
  if (name.includes('=?')) return false;
  const labels = domain.split('.');
  if (labels.length < 2 && domain !== 'localhost') return false;
  return local.test(name) && labels.every((part) => label.test(part));
}
