# ruby-redis.rb -- the redis gem (ruby-redis of Debian).
require 'json'
require 'redis'

WORLD = JSON.parse(File.read(ENV['WEIR_WORLD']))
STEPS = []

def client(server = 'plain', **options)
  Redis.new(host: WORLD['host'], port: WORLD['ports'][server], timeout: 30, reconnect_attempts: 0, **options)
end

def same(is, should)
  raise "came #{is.inspect} instead of #{should.inspect}" unless is == should
end

def refused(why)
  yield
rescue Redis::BaseError => e
  raise unless e.message.include?(why)
else
  raise "not refused: #{why}"
end

def connect
  same client.ping, 'PONG'
  same client(id: 'shop', db: 0).call('CLIENT', 'GETNAME'), 'shop'
  same client.info['redis_mode'], 'standalone'
end

def throttle
  r = client
  WORLD['golden'].each do |row|
    r.call('WEIR.CLOCK', row['now_ns'])
    same r.call('CL.THROTTLE', 'golden', 4, 1, 1, row['quantity']), row['reply']
  end
end

def check
  r = client
  [4, 3, 2, 1, 0].each { |left| same r.call('WEIR.CHECK', 'ip', '192.0.2.7', 'uri', '/')[0, 4], [1, 'per-ip', 5, left] }
  same r.call('WEIR.CHECK', 'ip', '192.0.2.7', 'uri', '/').values_at(0, 1, 4, 8), [0, 'per-ip', 2000, 'limited']
end

def errors
  r = client
  refused('Zero rates') { r.call('CL.THROTTLE', 'k', 4, 0, 1) }
  refused('unknown command') { r.set('k', 1) }
  same r.ping, 'PONG'
end

def pipeline
  replies = client.pipelined { |pipe| 100.times { pipe.call('CL.THROTTLE', 'pipeline', 4, 1, 60) } }
  same replies.map(&:first), [0] * 5 + [1] * 95
end

def multi
  replies = client.multi do |pipe|
    pipe.call('CL.THROTTLE', 'multi', 4, 1, 60)
    pipe.ping
    pipe.call('CL.THROTTLE', 'multi', 4, 1, 60)
  end
  same replies, [[0, 5, 4, -1, 60], 'PONG', [0, 5, 3, -1, 120]]
end

def events
  got = nil
  listener = client
  listener.subscribe('weir.events.mode') do |on|
    on.subscribe { client.call('WEIR.MODE', 'shadow', 'per-ip') }
    on.message do |channel, text|
      got = [channel, JSON.parse(text)['rule']]
      listener.unsubscribe
    end
  end
  same got, ['weir.events.mode', 'per-ip']
  same listener.ping, 'PONG'
end

def auth
  refused('NOAUTH') { client('guarded').ping }
  refused('token is not known') { client('guarded', password: 'wrong').ping }
  r = client('guarded', password: WORLD['check_token'])
  same r.call('WEIR.CHECK', 'ip', '192.0.2.7').first, 1
  refused('needs the admin role') { r.call('WEIR.MODE', 'off', 'per-ip') }
  r = client('guarded', username: 'default', password: WORLD['admin_token'])
  JSON.parse(r.call('WEIR.MODE', 'off', 'per-ip'))
end

def tls
  trust = { ca_file: WORLD['certificate'] }
  r = client('tls', ssl: true, ssl_params: trust, password: WORLD['check_token'])
  same r.call('CL.THROTTLE', 'tls', 4, 1, 60), [0, 5, 4, -1, 60]
end

%i[connect throttle check errors pipeline multi events auth tls].each do |step|
  send(step)
  STEPS << step
end
puts "ruby-redis #{Redis::VERSION}: #{STEPS.join(' ')}"
