/** URLs of databases as providers print them and as libpq documents them. */
import { describe, expect, it } from 'vitest';
import { parseConnection, placeOf, urlForPrograms } from '../../../src/db/connection/settings.ts';

const AT = 'postgres://ada:hush@db.example/shop';
const host = (name: string, port = 5432, address?: string) => ({ host: name, address, port });

describe('The URL that a provider prints is read', () => {
  it.each<[provider: string, url: string, settings: object, tls: object]>([
    [
      'Neon',
      'postgresql://ada:npg_x1@ep-cool-1234-pooler.eu-central-1.aws.neon.tech/neondb?sslmode=require&channel_binding=require',
      {
        hosts: [host('ep-cool-1234-pooler.eu-central-1.aws.neon.tech')],
        channelBinding: 'require',
        database: 'neondb',
      },
      { mode: 'require' },
    ],
    [
      'Neon for clients without SNI',
      'postgres://ada:x@ep-cool-1234.neon.tech/neondb?sslmode=require&options=endpoint%3Dep-cool-1234',
      { session: { options: 'endpoint=ep-cool-1234' } },
      { mode: 'require' },
    ],
    [
      'Supabase',
      'postgresql://postgres.abcdefgh:p%40ss%2Fword@aws-0-eu-central-1.pooler.supabase.com:6543/postgres?pgbouncer=true',
      {
        user: 'postgres.abcdefgh',
        password: 'p@ss/word',
        hosts: [host('aws-0-eu-central-1.pooler.supabase.com', 6543)],
        keepsSession: false,
      },
      { mode: 'prefer' },
    ],
    [
      'RDS and Aurora',
      'postgres://ada:x@shop.cluster-c1.eu-west-1.rds.amazonaws.com:5432/shop?sslmode=verify-full&sslrootcert=/etc/rds/global-bundle.pem',
      { hosts: [host('shop.cluster-c1.eu-west-1.rds.amazonaws.com')] },
      { mode: 'verify-full', rootCertificates: '/etc/rds/global-bundle.pem' },
    ],
    [
      'Cloud SQL by its socket',
      'postgresql://ada:x@/shop?host=/cloudsql/project:europe-west1:shop',
      { hosts: [host('/cloudsql/project:europe-west1:shop')], database: 'shop' },
      { mode: 'prefer' },
    ],
    [
      'Cloud SQL with client certificates',
      'postgresql://ada:x@10.1.2.3/shop?sslmode=verify-ca&sslrootcert=server-ca.pem&sslcert=client-cert.pem&sslkey=client-key.pem',
      { hosts: [host('10.1.2.3')] },
      {
        mode: 'verify-ca',
        rootCertificates: 'server-ca.pem',
        certificate: 'client-cert.pem',
        key: 'client-key.pem',
      },
    ],
    [
      'Azure',
      'postgres://ada%40shop:x@shop.postgres.database.azure.com/postgres?sslmode=require',
      { user: 'ada@shop', database: 'postgres' },
      { mode: 'require' },
    ],
    [
      'Heroku',
      'postgres://u1:p2@ec2-1-2-3-4.eu-west-1.compute.amazonaws.com:5432/d3',
      { user: 'u1', password: 'p2', database: 'd3' },
      { mode: 'prefer' },
    ],
    [
      'Aiven',
      'postgres://avnadmin:AVNS_x@shop-ada.a.aivencloud.com:24757/defaultdb?sslmode=require',
      { hosts: [host('shop-ada.a.aivencloud.com', 24757)] },
      { mode: 'require' },
    ],
    [
      'DigitalOcean',
      'postgresql://doadmin:AVNS_x@shop-do-user-1-0.b.db.ondigitalocean.com:25060/defaultdb?sslmode=require',
      { hosts: [host('shop-do-user-1-0.b.db.ondigitalocean.com', 25060)] },
      { mode: 'require' },
    ],
    [
      'Crunchy Bridge',
      'postgres://application:x@p.abc.db.postgresbridge.com:5432/postgres?sslmode=verify-full&sslrootcert=system',
      {},
      { mode: 'verify-full', rootCertificates: 'system' },
    ],
    [
      'Timescale',
      'postgres://tsdbadmin:x@abc.def.tsdb.cloud.timescale.com:33010/tsdb?sslmode=require',
      { database: 'tsdb' },
      { mode: 'require' },
    ],
    [
      'Patroni',
      'postgresql://ada:x@pg1:5432,pg2:5433,[fd00::3]/shop?target_session_attrs=read-write&connect_timeout=10',
      {
        hosts: [host('pg1'), host('pg2', 5433), host('fd00::3')],
        targetSession: 'read-write',
        connectTimeoutMs: 10_000,
      },
      { mode: 'prefer' },
    ],
  ])('of %s', (_, url, settings, tls) => {
    const read = parseConnection(url);
    expect(read).toMatchObject(settings);
    expect(read.tls).toMatchObject(tls);
  });
});

describe('A parameter means what libpq documents', () => {
  it.each<[query: string, settings: object]>([
    ['', { connectTimeoutMs: 5_000, keepAliveS: 60, keepsSession: true, targetSession: 'any' }],
    ['connect_timeout=0', { connectTimeoutMs: 0 }],
    ['connect_timeout=', { connectTimeoutMs: 5_000 }],
    ['keepalives=0', { keepAliveS: 0 }],
    [
      'keepalives=1&keepalives_idle=30&keepalives_interval=10&keepalives_count=5',
      { keepAliveS: 30 },
    ],
    [
      'tcp_user_timeout=30000&gssencmode=disable&client_encoding=utf8',
      { hosts: [host('db.example')] },
    ],
    ['application_name=shop%20one', { session: { application_name: 'shop one' } }],
    // A plus sign is no space, as in libpq.
    ['options=-c%20search_path%3Da+b', { session: { options: '-c search_path=a+b' } }],
    ['target_session_attrs=prefer-standby', { targetSession: 'prefer-standby' }],
    ['hostaddr=10.0.0.9', { hosts: [host('db.example', 5432, '10.0.0.9')] }],
    ['host=a,b&port=6000,6001', { hosts: [host('a', 6000), host('b', 6001)] }],
    ['user=eve&password=p%26&dbname=d', { user: 'eve', password: 'p&', database: 'd' }],
    ['pool_mode=transaction', { keepsSession: false }],
    ['pool_mode=session&pgbouncer=true', { keepsSession: true }],
    ['channel_binding=disable', { channelBinding: 'disable' }],
  ])('%s', (query, settings) => {
    expect(parseConnection(`${AT}?${query}`)).toMatchObject(settings);
  });

  it.each<[query: string, tls: object]>([
    ['', { mode: 'prefer', isDirect: false, namesHost: true, rootCertificates: undefined }],
    ['sslmode=disable', { mode: 'disable' }],
    ['sslmode=allow', { mode: 'allow' }],
    ['sslmode=prefer', { mode: 'prefer' }],
    ['sslmode=require', { mode: 'require' }],
    ['sslmode=verify-ca', { mode: 'verify-ca' }],
    ['sslmode=verify-full', { mode: 'verify-full' }],
    ['ssl=true', { mode: 'require' }],
    ['sslmode=require&sslrootcert=/ca.pem', { mode: 'require', rootCertificates: '/ca.pem' }],
    ['sslrootcert=system', { mode: 'verify-full' }],
    ['sslmode=require&sslnegotiation=direct', { isDirect: true }],
    ['sslsni=0', { namesHost: false }],
    ['sslcert=c&sslkey=k&sslpassword=p', { certificate: 'c', key: 'k', keyPassword: 'p' }],
    ['sslcert=c&sslkey=k&sslcertmode=disable', { certificate: undefined, key: undefined }],
    ['sslcrl=/crl.pem', { revocations: '/crl.pem' }],
    ['ssl_min_protocol_version=TLSv1.3', { minVersion: 'TLSv1.3', maxVersion: undefined }],
  ])('of TLS: %s', (query, tls) => {
    expect(parseConnection(`${AT}?${query}`).tls).toMatchObject(tls);
  });

  it('a user and a database may stand in the query, and a folder of a socket in the host', () => {
    const read = parseConnection('postgresql://%2Fvar%2Frun%2Fpostgresql?user=ada&dbname=shop');
    const { hosts, user, database } = read;
    expect({ hosts, user, database }).toEqual({
      hosts: [host('/var/run/postgresql')],
      user: 'ada',
      database: 'shop',
    });
  });
});

describe('One line names what cannot work', () => {
  const MALFORMED = ' must be a URL such as postgres://user:password@host:5432/database; write ';
  it.each<[url: string, line: string]>([
    ['mysql://db.example/shop', MALFORMED],
    ['db.example/shop', MALFORMED],
    ['postgres://ada:pa/ss@db.example/shop', MALFORMED],
    ['postgres://ada:pa?ss@db.example/shop', MALFORMED],
    ['postgres://ada:pa#ss@db.example/shop', MALFORMED],
    // What stands before the character is read as a port.
    ['postgres://ada:50?hush@db.example/shop', MALFORMED],
    ['postgres://ada:50?hu=ss@db.example/shop', MALFORMED],
    ['postgres://ada:50/a?hush@db.example/shop', MALFORMED],
    ['postgres://ada:50%@db.example/shop', ': the password has a % that does not encode'],
    [
      `${AT}?sslmode=on`,
      ': sslmode must be disable, allow, prefer, require, verify-ca or verify-f',
    ],
    [
      `${AT}?sslmode=require&sslrootcert=system`,
      ': sslrootcert is system, which needs sslmode=ver',
    ],
    [
      `${AT}?sslnegotiation=direct`,
      ': sslnegotiation is direct, which needs sslmode=require, veri',
    ],
    [`${AT}?sslcert=c.pem`, ': sslcert needs sslkey, the file of its key'],
    [`${AT}?sslkey=c.pem`, ': sslkey needs sslcert, the file of its certificate'],
    [`${AT}?channel_binding=on`, ': channel_binding must be disable, prefer or require'],
    [`${AT}?target_session_attrs=master`, ': target_session_attrs must be any, read-write, read-o'],
    [`${AT}?connect_timeout=10s`, ': connect_timeout must be a whole number of seconds'],
    [`${AT}?keepalives=yes`, ': keepalives must be 0 or 1'],
    [`${AT}?port=99999`, ': port must be a whole number up to 65535'],
    [
      `${AT}?client_encoding=latin1`,
      ': client_encoding is not supported with this value; use UTF8',
    ],
    [`${AT}?gssencmode=require`, ': gssencmode is not supported with this value; use gssencmode=d'],
    [
      `${AT}?load_balance_hosts=random`,
      ': load_balance_hosts is not supported with this value; na',
    ],
    [`${AT}?connection_limit=1`, ': connection_limit is not supported; use the set'],
    [`${AT}?schema=public`, ': schema is not supported; remove it; the tables are'],
    [`${AT}?passfile=/x`, ': passfile is not supported; put the password into the'],
    [`${AT}?pool_mode=statement`, ': pool_mode must be session or transaction'],
    [`${AT}?statement_timeout=5`, ': statement_timeout is no parameter of a connection; remove it'],
  ])('%s', (url, line) => {
    expect(() => parseConnection(url, 'DATABASE_URL')).toThrow(
      expect.objectContaining({ code: 'bad_setting', detail: expect.stringContaining(line) }),
    );
    try {
      parseConnection(url, 'DATABASE_URL');
    } catch (error) {
      expect(String(error)).not.toMatch(/hush|ss@|50%@/);
    }
  });
});

it('Programs of Postgres get a URL without what only Tallyhook knows', () => {
  const url = 'postgres://ada:h%40sh@a:1,b:2/shop?pgbouncer=true&sslmode=require&pool_mode=session';
  expect(urlForPrograms(url)).toBe('postgres://ada:h%40sh@a:1,b:2/shop?sslmode=require');
  expect(urlForPrograms(url, { user: 'eve@x' })).toBe(
    'postgres://eve%40x@a:1,b:2/shop?sslmode=require',
  );
  expect(urlForPrograms('postgres:///?user=ada&password=p', { user: 'eve', password: 'q' })).toBe(
    'postgres://eve:q@/',
  );
  // Nothing secret for arguments.
  const secret = 'postgres://a:b@h/d?%70assword=x&sslpassword=y&sslkey=k&sslcert=c';
  expect(urlForPrograms(secret, { user: 'a' })).toBe('postgres://a@h/d?sslkey=k&sslcert=c');
});

it('People are told all hosts, and no password', () => {
  expect(placeOf(parseConnection('postgres://ada:hush@[fd00::3],b:2/shop'))).toEqual({
    user: 'ada',
    host: '[fd00::3] or b:2',
    database: 'shop',
  });
});
