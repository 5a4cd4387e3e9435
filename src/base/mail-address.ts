/*
 * Stricter than the standards: no quoted parts, comments, groups, address literals or names beside the address. What is
 * left cannot end a header line, add a recipient, or be taken for a command by a mail server or for an option (`-oQ…`) by a
 * program that sends mail.
 */
const local = /^[a-z0-9!#$%&'*+/=?^_`{|}~][a-z0-9!#$%&'*+/=?^_`{|}~-]*(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i;
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** Tells whether this is one plain ASCII address and nothing else. Its domain has a dot (mail to `a@b` leads nowhere) or is `localhost`. */
export function isMailAddress(text: string): boolean {
  const at = text.lastIndexOf('@');
  const [name, domain] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || name.length > 64 || domain.length > 253 || text.length > 254) return false;
  // The beginning of an encoded word, which some programs decode: `=?utf-8?q?…?=`.
  if (name.includes('=?')) return false;
  const labels = domain.split('.');
  if (labels.length < 2 && domain !== 'localhost') return false;
  return local.test(name) && labels.every((part) => label.test(part));
}
