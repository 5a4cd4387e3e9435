import type { FastifyReply, FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';
import { inputError } from '../base/errors.ts';
import { CONSOLE_SESSION_MS } from '../base/limits.ts';
import { isForwardedTls } from '../http/page.ts';

/* Only requests of the console itself may use the cookie of its session. */

const name = 'sluice_session';
const pattern = new RegExp(`(?:^|;)\\s*${name}=([\\w-]{43})\\s*(?:;|$)`);

export function sessionCookie({ headers: { cookie } }: FastifyRequest): string | null {
  return cookie === undefined ? null : (pattern.exec(cookie)?.[1] ?? null);
}

export function setSessionCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  cookie: string,
  publicUrl: string | null,
): void {
  reply.header('set-cookie', write(request, cookie, CONSOLE_SESSION_MS / 1_000, publicUrl));
}

export function clearSessionCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  publicUrl: string | null,
): void {
  reply.header('set-cookie', write(request, '', 0, publicUrl));
}

function write(request: FastifyRequest, value: string, seconds: number, publicUrl: string | null): string {
  const attributes = ['Path=/', `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Strict'];
  if (isHttps(request, publicUrl)) attributes.push('Secure');
  return [`${name}=${value}`, ...attributes].join('; ');
}

/** By PUBLIC_URL or the proxy's header. A forged header can only restrict the cookie to TLS. */
function isHttps(request: FastifyRequest, publicUrl: string | null): boolean {
  return publicUrl?.startsWith('https:') === true || isForwardedTls(request);
}

/** A proxied request counts as another machine's, because anybody may be behind the proxy. */
export function isOfThisMachine({ ip, socket, headers }: FastifyRequest): boolean {
  const isForwarded = (headers['x-forwarded-for'] ?? headers.forwarded) !== undefined;
  return !isForwarded && [ip, socket.remoteAddress ?? ''].every(isLoopback);
}

function isLoopback(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
}

const reading = new Set(['GET', 'HEAD']);

/**
 * `SameSite=Strict` allows requests from other ports of the host. Browsers send `Sec-Fetch-Site`
 * only over trusted connections, and `Origin` with every change.
 */
export function crossOriginProblem(request: FastifyRequest): Error | null {
  const { 'sec-fetch-site': site, origin, host } = request.headers;
  const isChange = !reading.has(request.method);
  if (site !== undefined) {
    const isOwn = site === 'same-origin' || (site === 'none' && !isChange);
    return isOwn ? null : refusal(`Sec-Fetch-Site: ${String(site).slice(0, 40)}`);
  }
  if (!isChange) return null;
  if (origin === undefined) return refusal('Sec-Fetch-Site is missing');
  return isOriginOf(origin, host) ? null : refusal('Origin is another');
}

function isOriginOf(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && host !== undefined && new URL(origin).host === host.toLowerCase();
}

function refusal(details: string): Error {
  return inputError('insufficient_scope', 'A session is good for requests of the console only', details);
}
