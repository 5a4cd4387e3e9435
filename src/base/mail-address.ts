// Stricter than the standards: no quoted parts, comments, groups, address literals or display
// names. So an address cannot end a header line, add a recipient, or pass for a command of a mail
// server or an option (`-oQ…`) of a mail program.
const local = /^[a-z0-9!#$%&'*+/=?^_`{|}~][a-z0-9!#$%&'*+/=?^_`{|}~-]*(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** Accepts one plain ASCII address. Its domain has a dot (`a@b` fails) or is `localhost`. */
export function isMailAddress(text: string): boolean {
  const at = text.lastIndexOf('@');
  const [name, domain] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || name.length > 64 || domain.length > 253 || text.length > 254) return false;
  // Some programs decode an encoded word: `=?utf-8?q?…?=`.
  if (name.includes('=?')) return false;
  const labels = domain.split('.');
  if (labels.length < 2 && domain !== 'localhost') return false;
  return local.test(name) && labels.every((part) => label.test(part));
}
