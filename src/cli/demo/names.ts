/** What the people and companies of the demo are made of. */
const list = (text: string): readonly string[] => text.split('|');

export const firstNames = list(
  'Ada|Aisha|Alejandro|Amélie|Anil|Astrid|Björn|Carmen|Chen|Chiara|Daniel|Dmitri|Elif|Emma|Fatima|Félix|Grace|Hana|' +
    'Hugo|Ingrid|Ivan|Jamal|João|Kaori|Kofi|Lars|Leila|Łukasz|Mateo|Mei|Nadia|Noah|Olga|Priya|Ravi|Sofia|Tomás|Wei|Zoë',
);
export const lastNames = list(
  'Adeyemi|Andersson|Bauer|Chen|Costa|Dubois|Fernández|Fischer|García|Haddad|Hansen|Ivanova|Jensen|Kaya|Kim|Kowalski|' +
    "Kumar|Lee|Martin|Müller|Nakamura|Nguyen|Novák|O'Brien|Okafor|Olsen|Patel|Petrov|Rossi|Sato|Schmidt|Silva|Singh",
);
export const countries = list('Brazil|Canada|France|Germany|India|Japan|Kenya|Poland|United States');
export const plans = list('free|starter|business|enterprise');
export const titles = list('Analyst|Designer|Engineer|Founder|Head of Growth|Product Manager');
export const teams = list('Data|Growth|Platform|Sales');

export const companyWords = list(
  'Acorn|Beacon|Cedar|Delta|Ember|Falcon|Granite|Harbor|Iris|Juniper|Kestrel|Lumen',
);
export const companyKinds = list('Analytics|Foods|Health|Labs|Logistics|Robotics|Software|Studios');
export const industries = list('Education|Finance|Health|Manufacturing|Media|Retail|Technology');
export const sizes = list('1-10|11-50|51-200|201-1000|1001+');
