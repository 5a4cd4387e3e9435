import type { TestServer } from '../../../support/servers/http.ts';

let visitors = 0;

/** Follows links and submits forms as a browser does. Keeps cookies for each origin. */
export class Visitor {
  readonly cookies = new Map<string, Map<string, string>>();
  readonly #server: TestServer;
  readonly #publicUrl: string;
  /** Each visitor has its own address, because failed sign-ins are counted by address. */
  readonly #address = `203.0.113.${++visitors}`;

  constructor(server: TestServer, publicUrl: string) {
    this.#server = server;
    this.#publicUrl = publicUrl;
  }

  cookie(name: string): string | undefined {
    return this.cookies.get(this.#publicUrl)?.get(name);
  }

  /** Sends a request as the console does. */
  async api<T>(method: string, path: string, body?: object): Promise<{ status: number; body: T }> {
    const headers = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
    const response = await this.send(`${this.#publicUrl}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: (text === '' ? null : JSON.parse(text)) as T };
  }

  /** Sends one request without following a redirect. */
  async send(address: string, options: RequestInit = {}): Promise<Response> {
    const { origin, pathname, search } = new URL(address);
    const jar = this.cookies.get(origin) ?? new Map<string, string>();
    this.cookies.set(origin, jar);
    const headers = new Headers(options.headers);
    if (jar.size > 0) headers.set('cookie', [...jar].map(([name, value]) => `${name}=${value}`).join('; '));
    headers.set('x-forwarded-for', this.#address);
    const base = origin === this.#publicUrl ? new URL(this.#server.address).origin : origin;
    const response = await fetch(base + pathname + search, { ...options, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  }

  /** Starts a sign-in. Returns the URL at the provider that the browser should open. */
  async begin(path = ''): Promise<string> {
    const { body } = await this.api<{ url: string | null; problem: string | null }>(
      'POST',
      '/v1/console/oidc/sign_in',
      { path },
    );
    if (typeof body.url !== 'string') throw new Error(body.problem ?? 'the address is refused');
    return body.url;
  }

  /** Signs in at the provider. Returns the URL to which it redirects the browser. */
  async answer(address: string, person: string): Promise<string> {
    let response = await this.send(address);
    let at = address;
    for (let steps = 0; steps < 20; steps++) {
      const location = response.headers.get('location');
      if (location !== null) {
        at = new URL(location, at).href;
        if (at.startsWith(this.#publicUrl)) return at;
        response = await this.send(at);
        continue;
      }
      const page = await response.text();
      const [, action = ''] = /<form[^>]*action="([^"]+)"/.exec(page) ?? [];
      const [, prompt = ''] = /name="prompt" value="(\w+)"/.exec(page) ?? [];
      if (action === '') throw new Error(`the provider shows no form: ${page.slice(0, 500)}`);
      at = new URL(action, at).href;
      const body = new URLSearchParams({ prompt, login: person, password: 'x' });
      response = await this.send(at, { method: 'POST', body });
    }
    throw new Error('the provider never sent the browser back');
  }

  /** Opens the URL to which the provider redirects the browser. Returns the next redirect. */
  async come(address: string): Promise<string> {
    const response = await this.send(address);
    return response.headers.get('location') ?? `no redirect, but ${response.status}`;
  }

  async signIn(person: string, path = ''): Promise<string> {
    return this.come(await this.answer(await this.begin(path), person));
  }
}
